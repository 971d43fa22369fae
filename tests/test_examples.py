"""The scripts a reader copies: short, and they run."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_runs(path, monkeypatch, capsys):
    assert len(path.read_text().splitlines()) <= 40
    torch.set_num_threads(1)
    monkeypatch.setattr(sys, "argv", [str(path), "120"])  # steps, where it takes them
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
