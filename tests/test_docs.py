"""What README and docs show works: Python blocks run, commands are understood, names and files exist, links lead on."""

import ast
import os
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import pytest
import typer

from source_code import PACKAGE, trees
from spie.agents import registry as agents
from spie.cli import app
from spie.tasks import registry as tasks

PROJECT = PACKAGE.parent
DOCS = {path.relative_to(PROJECT).as_posix(): path.read_text() for path in sorted(PROJECT.glob("docs/*.md"))}
DOCS["README.md"] = (PROJECT / "README.md").read_text()
# Long runs are made short; each of these texts must be there, so that none is left behind.
SHORTER = {
    "README.md": {
        'MlpPolicy", env)': 'MlpPolicy", env, n_steps=16)',
        "learn(20_000": "learn(256",
    },
    "docs/dropin.md": {
        'PPO("MlpPolicy", env)': 'PPO("MlpPolicy", env, n_steps=16)',
        "learn(20_000": "learn(256",
    },
    "docs/deep.md": {"steps=5_000": "steps=60", "rooms, 5_000": "rooms, 60", "rooms, 2_000": "rooms, 600"},
    "docs/scaling.md": {"confirm=1000": "confirm=10"},
}
MAZE = "S..\n.#.\n..G\n"


class Block(NamedTuple):
    doc: str
    line: int
    language: str
    text: str


def blocks(doc):
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", DOCS[doc], re.MULTILINE | re.DOTALL)
    return [Block(doc, DOCS[doc][: block.start()].count("\n") + 1, *block.groups()) for block in found]


def prose(doc):
    return re.sub(r"^```.*?^```$", "", DOCS[doc], flags=re.MULTILINE | re.DOTALL)


def quoted(doc):
    """What stands in backticks outside of blocks."""
    return list(dict.fromkeys(re.findall(r"`([^`\n]+)`", prose(doc))))


def program(doc):
    """The Python blocks of a text, one after the other as a reader would type them, with long runs made short."""
    text = "\n\n".join(block.text for block in blocks(doc) if block.language == "python")
    for old, new in SHORTER.get(doc, {}).items():
        assert old in text, f"{doc} no longer has {old}"
        text = text.replace(old, new)
    return text


def commands():
    """(text, words) of every command line `spie ...` in a block or in backticks; [...] and capitals stay."""
    for doc in DOCS:
        lines = [line for block in blocks(doc) if not block.language for line in block.text.splitlines()]
        for line in [*lines, *quoted(doc)]:
            words = shlex.split(line, comments=True) if line.startswith("spie ") else []
            if len(words) > 1 and re.fullmatch("[a-z]+", words[1]):
                yield pytest.param(words[1:], id=f"{doc}: {' '.join(words)}")


@pytest.mark.slow
@pytest.mark.parametrize("doc", [doc for doc in DOCS if program(doc)])
def test_python_blocks_run_and_print_what_they_say(doc, tmp_path):
    script = tmp_path / "blocks.py"
    script.write_text(program(doc))
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    for number in re.findall(r"#.* prints ([\d,.]+\d)", program(doc)):
        assert number in run.stdout


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_is_understood(words):
    group = typer.main.get_command(app)
    known = group.commands
    assert words[0] in known, f"no command {words[0]}"
    numbers = [re.sub(r"^N$", "1", word) for word in words[1:]]
    if len(numbers) > 0:  # a command's bare name stands for the command
        known[words[0]].make_context(words[0], numbers)


def test_a_wrong_command_would_be_noticed():
    command = typer.main.get_command(app).commands["run"]
    with pytest.raises(Exception, match="sedes"):
        command.make_context("run", ["table1", "--sedes", "3"])


@pytest.mark.parametrize(
    "line", [line for doc in DOCS for block in blocks(doc) for line in block.text.splitlines() if "make " in line]
)
def test_a_target_of_make_exists(line):
    targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert line.split("#")[0].split()[1] in targets


def test_the_maze_of_the_readme_is_drawn(spie, tmp_path):
    (tmp_path / "my-maze.txt").write_text(MAZE)
    assert "`spie show my-maze.txt`" in DOCS["README.md"]
    code, out, _ = spie("show", "my-maze.txt")
    assert code == 0
    assert "8 states" in out
    assert (tmp_path / "my-maze.png").exists()


@pytest.mark.parametrize("doc", DOCS)
def test_links_lead_to_files_and_headings(doc):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(doc)):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = (PROJECT / doc).parent / path if path else PROJECT / doc
        assert target.exists(), f"{doc}: {link}"
        titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if heading else []
        slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in slugs, f"{doc}: {link}"


def test_the_code_map_has_every_module_at_the_top_of_the_package():
    table = DOCS["README.md"].partition("## Code map")[2].partition("\n## ")[0]
    told = set(re.findall(r"`spie/(\w+)(?:/|\.py)`", table))
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py") and not path.name.startswith("__")}
    assert told == there


# names


def names_of(modules):
    """Whatever the code calls something: identifiers, keywords, attributes, and the words of its strings."""
    found = set()
    for tree in modules.values():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=name):
                    found.add(name)
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    found.add(name)
                case ast.Constant(value=str(text)) if len(text) < 200:
                    found |= {text, *re.findall(r"[\w()-]+", text)}
    return found


OURS = trees() | {name: tree for name, tree in trees(PROJECT / "tests").items() if not name.endswith("test_docs")}
KNOWN = names_of(OURS) | {*agents.names(), *tasks.names()}
FOLDERS = "spie tests docs examples notebooks benchmarks".split()
FILES = [f"/{path.relative_to(PROJECT).as_posix()}" for folder in FOLDERS for path in (PROJECT / folder).rglob("*")]
FILES += [f"/{path.name}" for path in PROJECT.iterdir()]
PLACEHOLDERS = {"GHz", "SEED", "my-maze", "v5"}
COMMANDS = set("python pip uvx git tensorboard ray make spie".split())
A_PATH = rf"(?:{'|'.join(FOLDERS)})/[\w./-]*|[\w./-]+\.(?:py|md|toml|html)\b"


def unknown_names(span):
    """The names and files in a piece of text in backticks that do not exist."""
    if span.split()[0] in COMMANDS or span in KNOWN:
        return []
    paths = re.findall(A_PATH, span)
    missing = [path for path in paths if not any(file.endswith(f"/{path.rstrip('/')}") for file in FILES)]
    rest = re.sub(A_PATH, "", span)
    strings = re.findall(r'"([^"]*)"', rest)
    missing += [string for string in strings if string not in KNOWN | PLACEHOLDERS]
    rest = re.sub(r'"[^"]*"', "", rest)
    return missing + [name for name in re.findall(r"[A-Za-z_]\w*", rest) if name not in KNOWN | PLACEHOLDERS]


def test_a_name_that_is_gone_would_be_noticed():
    assert unknown_names("update_row_of_old") == ["update_row_of_old"]
    assert unknown_names('Sarsa(reward="sr-r", old_option=3)') == ["old_option"]
    assert unknown_names("agents/sarsa_of_old.py") == ["agents/sarsa_of_old.py"]
    assert unknown_names('spie.agent("sarsa-of-old")') == ["sarsa-of-old"]
    assert unknown_names("spie/rewards.py") == unknown_names('spie.agent("sarsa-srr", beta=10)') == []


@pytest.mark.parametrize("doc", DOCS)
def test_names_in_backticks_exist(doc):
    found = {span: unknown_names(span) for span in quoted(doc)}
    lines = [f"`{span}`: {', '.join(names)}" for span, names in found.items() if names]
    assert not lines, "\n".join(lines)
