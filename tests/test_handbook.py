"""The site: what it is made of is fresh and complete, and its links lead on."""

import importlib.util
import re

import pytest

import spie
from handbook import found, links, reference, site
from handbook.public_names import public_names


def test_what_the_readme_says_we_found_is_what_the_results_say():
    text = found.README.read_text()
    assert found.renewed(text) == text, "README.md is older than the results that ship; make found"


def test_a_text_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="no <!-- computed by"):
        found.renewed("# spie")


def test_the_reference_has_every_public_name_with_its_example():
    pages = reference.pages()
    text = "".join(pages.values())
    for public in public_names():
        assert f"## {public.name} {{" in text
    assert text.count(">>>") >= len(public_names()) - 5  # those that read files of others show none
    assert "| `alpha` | `0.1` | learning rate of Q" in pages["agents.md"]
    named = re.findall(r"reference/([\w-]+\.md)", (site.PROJECT / "mkdocs.yml").read_text())
    assert sorted(named) == sorted(pages)


def test_every_page_is_in_the_navigation():
    told = set(re.findall(r": ([\w-]+\.md)$", (site.PROJECT / "mkdocs.yml").read_text(), re.MULTILINE))
    ours = {path.name for path in (site.PROJECT / "docs").glob("*.md")} | set(site.TOP.values())
    assert told == ours | {"results.md", "draw.md"}


@pytest.mark.parametrize(
    ("link", "folder", "there"),
    [
        ("docs/mazes.md#bumps", "", "mazes.md#bumps"),
        ("CHANGELOG.md", "", "changelog.md"),
        ("../CONTRIBUTING.md", "docs/", "contributing.md"),
        ("paper.md", "docs/", "paper.md"),
        ("../examples", "docs/", f"{site.REPOSITORY}examples"),
        ("notebooks", "", "notebooks/1_representations.md"),
        ("https://example.org/a", "", "https://example.org/a"),
        ("#bumps", "docs/", "#bumps"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(link, folder, there):
    assert site.rewritten(f"[x]({link})", folder) == f"[x]({there})"


def test_links_that_lead_nowhere_and_what_is_loaded_from_elsewhere_are_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top">a</a><a href="gone.html">b</a><a href="other.html#no">c</a>'
        '<script src="https://example.org/x.js"></script><a href="https://github.com/OWNER/spie/blob/main/x">d</a>'
    )
    (tmp_path / "other.html").write_text('<h1 id="yes"></h1><a href="index.html#top">back</a>')
    assert links.faults(tmp_path) == [
        "index.html: gone.html leads nowhere",
        "index.html: loads https://example.org/x.js",
        "index.html: other.html#no has no such heading",
    ]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="zensical is not installed")
def test_the_site_is_built_and_its_links_lead_on(tmp_path, monkeypatch):
    config = (site.PROJECT / "mkdocs.yml").read_text()
    monkeypatch.setattr(site, "SOURCES", tmp_path / "build" / "handbook")
    monkeypatch.setattr(site, "SITE", tmp_path / "build" / "site")
    monkeypatch.setattr(site, "CONFIG", tmp_path / "mkdocs.yml")
    site.CONFIG.write_text(config)
    site.assemble(run_notebooks=False, with_pages=False)
    site.build()
    assert links.faults(site.SITE) == []
    assert links.count(site.SITE)[0] > 40


def test_one_version_is_told_everywhere():
    project, version = site.PROJECT, spie.__version__
    assert f"spie_rl-{version}-py3-none-any.whl" in (project / "README.md").read_text()
    dated = re.findall(r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$", (project / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert dated[0] == version
