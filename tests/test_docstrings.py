"""Every public name says what it takes and shows an example, which runs and prints what it says."""

import contextlib
import doctest
import inspect
import pathlib
import tempfile
import warnings

import gymnasium as gym
import numpy as np
import pytest

import spie
from handbook.public_names import Public, missing, public_names
from spie import registry

PUBLIC = public_names()
READS_FILES = {"spie.data.tartarus", "spie.data.labyrinth", "spie.data.download", "spie.data.data_folder",
               "spie.data.check_files", "spie.data.read"}  # fmt: skip


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.name)
def test_every_argument_is_spoken_of(public: Public) -> None:
    assert public.text
    assert not missing(public)


@pytest.mark.slow
@pytest.mark.parametrize("public", [one for one in PUBLIC if one.name not in READS_FILES], ids=lambda one: one.name)
def test_the_example_runs_and_prints_what_it_says(public: Public, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"np": np, "gym": gym, "spie": spie, "tempfile": tempfile, "pathlib": pathlib}
    found = doctest.DocTestParser().get_doctest(public.text, names, public.name, None, None)
    assert found.examples, f"{public.name} shows no example"
    with warnings.catch_warnings(), contextlib.ExitStack() as forgets:
        warnings.simplefilter("ignore")
        for known in registry._REGISTRIES:  # what an example registers is known to this example only
            forgets.enter_context(known.restored())
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found)
    assert result.failed == 0


def test_a_wrong_example_would_be_noticed() -> None:
    found = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(found, out=lambda text: None).failed == 1


def test_an_argument_without_a_word_would_be_noticed() -> None:
    def silent(loud: int) -> None:
        """Says nothing."""

    assert missing(Public("silent", silent, "")) == ["loud"]
    assert all(inspect.getdoc(one.value) for one in PUBLIC)
