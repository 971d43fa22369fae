"""Nothing is read or written out of bounds: kernels with checked indices, vector code between guarded pages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="memory is protected as Linux does")]
TESTS = Path(__file__).parents[1]


def ran(script, *words, **environment):
    command = [sys.executable, str(TESTS / script), *words]
    here = {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, env=os.environ | here | environment, capture_output=True, text=True, timeout=600)


def test_with_checked_bounds_kernels_leave_the_same_bits_and_a_planted_index_is_caught(tmp_path):
    checked = ran("checked_bounds.py", "plant", NUMBA_BOUNDSCHECK="1", SPIE_CACHE=str(tmp_path))
    assert checked.returncode == 0, checked.stderr
    left, inside, caught = checked.stdout.splitlines()
    assert json.loads(left) == json.loads(ran("checked_bounds.py").stdout)
    assert inside == "0.0"
    assert caught == "caught: index is out of bounds"


def test_vector_code_touches_nothing_beyond_its_arrays():
    assert ran("guarded_pages.py").stdout == "unharmed\n"


def test_one_entry_too_many_would_be_noticed():
    assert ran("guarded_pages.py", "too-far").returncode < 0  # ended by the system
