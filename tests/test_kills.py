"""A little of `make kills`: commands that are killed and continued leave the bits of unbroken ones."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "kills.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_sweep_and_a_training_that_are_killed_go_on_to_the_same_bits():
    command = [sys.executable, str(PROGRAM), "sweep", "train", "--kills", "4", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT the same" not in done.stdout
    assert "4 kills" in done.stdout.splitlines()[-1]
