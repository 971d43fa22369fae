"""A little of `make fuzz`, the same inputs every time; a failure prints the command that repeats it."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "fuzz" / "__main__.py"
QUICK = "settings mdps maps mazes representations assignments stores bonus-files checkpoints paths user-files".split()
QUICK += ["novelty", "features", "behaviour"]


def tried(*words):
    done = subprocess.run([sys.executable, str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_made_up_inputs_and_damaged_files_are_refused_in_one_line_or_right():
    code, said = tried(*QUICK, "--most", 250, "--seconds", 600)
    assert code == 0, said
    assert f"{250 * len(QUICK):,} inputs of {len(QUICK)} kinds" in said  # no kind was left out


@pytest.mark.slow
def test_made_up_options_of_runs_and_command_lines_are_refused_in_one_line_or_taken():
    code, said = tried("options", "commands", "wrappers", "plots", "studies", "--most", 60, "--seconds", 600)
    assert code == 0, said


def test_a_failure_is_found_and_repeated_by_the_command_that_is_printed(tmp_path):
    plant = tmp_path / "planted.py"
    plant.write_text(
        f"import sys; sys.path[:0] = [{str(PROGRAM.parent)!r}]\n"
        "import os, time, harness\n"
        "def planted(rng, shared):\n"
        "    kind = rng.choice(['right', 'raw', 'hang', 'crash', 'difference'])\n"
        "    def call():\n"
        "        if kind == 'raw': [][0]\n"
        "        if kind == 'hang': time.sleep(9)\n"
        "        if kind == 'crash': os.kill(os.getpid(), 11)\n"
        "        if kind == 'difference': raise harness.Difference('other numbers')\n"
        "    return harness.Attempt(kind, call)\n"
        "harness.LIMIT = 0.1\n"
        "found = harness.run(harness.Fuzzer('planted', planted), 0, 60, 30)\n"
        "print(dict(found.counts)); print(found.failures)\n"
    )
    done = subprocess.run([sys.executable, str(plant)], capture_output=True, text=True, timeout=100)
    for kind in ("right", "raw error", "hang", "crash", "difference"):
        assert f"'{kind}'" in done.stdout, done.stdout + done.stderr
    assert "planted --seed 0 --case" in done.stdout
