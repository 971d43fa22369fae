import multiprocessing
import sys

import pytest
from hypothesis import settings

from spie.cli import main
from spie.engine import specialise
from spie.rewards import REWARDS
from spie.runs import ahead

# A first call may compile for seconds, so no deadline; the same examples every time, so that a failure comes back.
settings.register_profile("spie", deadline=None, derandomize=True)
settings.load_profile("spie")

# Processes of environments are forked from one that has imported what they need, not each for itself.
multiprocessing.set_forkserver_preload(["spie.sb3"])

ahead.MOST_PROCESSES = 0  # the tests themselves keep all cores busy; tests/runs/test_ahead.py has its own


@pytest.fixture(autouse=True)
def _forget_rewards():
    """A reward that a test defines is known to this test only."""
    with REWARDS.restored():
        yield


@pytest.fixture
def spie(monkeypatch, capsys, tmp_path):
    """Run a command line in an empty folder; returns exit code, output and error output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPIE_RESULTS", raising=False)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["spie", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return command


@pytest.fixture(autouse=True, scope="session")
def _no_kernel(request):
    """`make test-fast` compiles nothing: there, a test that needs a kernel fails and says what to do."""

    def refuse(*_):
        pytest.fail("this test needs a kernel: mark it with @pytest.mark.slow")

    with pytest.MonkeyPatch.context() as patch:
        if request.config.option.markexpr == "not slow":
            patch.setattr(specialise, "_load", refuse)
        yield
