"""The notebooks run, in a short form, and their links lead on."""

import re

import pytest
import torch

from handbook import notebooks

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.py"))
SHORTER = {  # long runs are made short; each of these texts must be there, so that none is left behind
    "1_representations": {"20_000": "2_000"},
    "4_stable_baselines3": {"20_480, 8": "256, 8", "n_steps=256, batch_size=256": "n_steps=16, batch_size=32"},
}


def script(path):
    text = path.read_text()
    for old, new in SHORTER.get(path.stem, {}).items():
        assert old in text, f"{path.name} no longer has {old}"
        text = text.replace(old, new)
    return text


def test_there_is_one_for_each_subject():
    assert [path.stem[0] for path in NOTEBOOKS] == list("12345")


def test_cells_of_text_lose_their_hashes_and_cells_of_code_stay():
    found = notebooks.cells("# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nx = 1  # one\nx\n")
    assert found == [(True, "# Title\n\nwords"), (False, "x = 1  # one\nx")]
    assert [output.printed for output in notebooks.run(found)] == ["", "1\n"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_something(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    found = notebooks.cells(script(path))
    assert found[0].text
    assert found[0].source.startswith("# ")
    outputs = notebooks.run(found)
    assert any(output.printed for output in outputs)
    drawing = sum("plt.subplots" in cell.source or "spie.plot" in cell.source for cell in found)
    assert drawing == 0 or any(output.figures for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_to_files(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        assert (path.parent / link).exists(), link
