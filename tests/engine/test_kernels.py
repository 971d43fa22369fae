"""From a plain function to compiled code: constants, rewards of any origin, errors, and what stays on disk.

A kernel of two lines stands in for the agents', because it compiles at once.
"""

import itertools
import linecache
import math
import os
import subprocess
import sys
import types
from functools import partial
from math import sqrt

import numpy as np
import pytest

import spie
from own_reward import HALF, mix
from spie.engine import inline
from spie.engine.specialise import _specialised, cache_folder, specialise
from spie.rewards import Reward

pytestmark = pytest.mark.slow

SCALE = 3.0
FACTOR = 1.0
TABLE = [1.0, 2.0]


def tiny_kernel(M_next, visits):
    """What the reward says of M_next and visits, through a helper."""
    return scaled(intrinsic_reward(M_next, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, visits, visits))  # noqa: F821


def scaled(x):
    if FACTOR == 1.0:
        return x
    return FACTOR * x


def doubled(x):
    return 2 * half_of(x) * 2


def half_of(x):
    return x / 2


def compiled(function, needs=("M_next",), factor=1.0):
    return specialise(tiny_kernel, [scaled], {"FACTOR": factor}, {}, Reward("mine", function, needs))


def test_a_kernel_calls_the_reward_with_what_it_asks_for():
    def reward(visits, M_next):
        return M_next - visits

    assert compiled(reward, ("visits", "M_next"))(0.5, 4) == -3.5


def test_constants_are_filled_in_and_not_read_from_the_kernels_own_file():
    def reward(M_next):
        return M_next

    assert compiled(reward)(0.5, 1) == 0.5
    assert compiled(reward, factor=8.0)(0.5, 1) == 4.0


def branches(x, MINE):
    if FLAG and not OTHER and x > 1:  # noqa: F821
        x += 10
    elif SIZE <= 2 or x > 2:  # noqa: F821
        x += 100
    if OTHER:  # noqa: F821
        MINE += 1000
    return (x if FLAG or x > 2 else -x) + MINE  # noqa: F821


def test_filling_in_constants_leaves_out_what_they_rule_out_and_nothing_else():
    for flag, other, size in itertools.product((False, True), (False, True), (2, 3)):
        constants = {"FLAG": flag, "OTHER": other, "SIZE": size, "MINE": -1}
        text = _specialised(branches, tuple(constants.items()))
        names = {}
        exec(text, names)
        asked = types.FunctionType(branches.__code__, constants)
        assert [names["branches"](x, 5) for x in range(5)] == [asked(x, 5) for x in range(5)]
        assert not {"FLAG", "OTHER", "SIZE"} & set(names["branches"].__code__.co_names)
        assert ("1000" in text) == other
        assert ("x += 10\n" in text) == (flag and not other)


def test_a_reward_may_use_numbers_math_numpy_and_functions_of_its_file():
    weight = 10

    def reward(M_next: float, visits: int) -> float:
        """Annotated and documented, as it should be."""
        return doubled(M_next) + SCALE * np.sqrt(visits) + math.floor(2.5) + sqrt(4.0) + weight

    expected = 2 * 0.5 + 3 * 3 + 2 + 2 + 10
    assert reward(0.5, 9) == expected
    assert compiled(reward, ("M_next", "visits"))(0.5, 9) == expected


def test_a_rewards_names_are_its_own():
    def scaled(x):
        return 7 * x

    def reward(M_next):
        return scaled(mix(M_next, HALF)) + FACTOR  # all three names mean other things to some kernel

    assert compiled(reward, factor=100.0)(1.5, 1) == 100 * (7 * 1.0 + 1)


def test_a_kernel_that_is_there_costs_nothing_to_find_again(monkeypatch):
    def reward(M_next):
        return M_next + 1000

    first = compiled(reward)
    monkeypatch.setattr(inline, "inlined", None)  # the text is not made again
    assert compiled(reward)(0.5, 1) == first(0.5, 1) == 1000.5


def test_a_function_defined_again_is_compiled_again():
    answers = []
    for weight in (1, 2):

        def reward(M_next):
            return weight * M_next  # noqa: B023

        answers.append(compiled(reward)(0.5, 1))

    def reward(M_next):
        return M_next + 40

    assert [*answers, compiled(reward)(0.5, 1)] == [0.5, 1.0, 40.5]


def test_a_constant_changed_is_compiled_again(monkeypatch):
    def reward(M_next):
        return SCALE * M_next

    assert compiled(reward)(0.5, 1) == 1.5
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert compiled(reward)(0.5, 1) == 2.0


def from_a_prompt(text):
    names = {}
    exec(text, names)
    return names["reward"]


def one_line(): return lambda M_next: 2 * M_next  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [lambda M_next: 2 * M_next, one_line(), from_a_prompt("def reward(M_next):\n    return 2 * M_next")],
    ids=["lambda", "lambda-in-a-line", "no-file"],
)
def test_a_function_without_a_text_of_its_own_is_compiled_as_it_is(function, tmp_path, monkeypatch):
    monkeypatch.setenv("SPIE_CACHE", str(tmp_path))  # other tests may be writing to the usual one
    assert compiled(function)(0.5, 1) == 1.0
    assert not list(cache_folder().iterdir())  # nothing to find again by


def test_what_a_kernel_cannot_hold_is_refused_by_name():
    def reward(M_next):
        return M_next * TABLE[0]

    with pytest.raises(
        ValueError, match=r'^reward "mine" uses TABLE, a list: it may use numbers, math, numpy and functions'
    ):
        compiled(reward)


def takes_a_file(M_next):
    with open("numbers") as file:
        return M_next + float(file.read())


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda M_next: "a" + M_next, r"No implementation .* for signature: >>> add\(Literal\[str\]\(a\), float64\)"),
        (lambda M_next: np.linalg.nothing(M_next), "module 'numpy.linalg' has no attribute 'nothing'"),
        (lambda M_next: nowhere + M_next, "NameError: name 'nowhere' is not defined"),  # noqa: F821
        (takes_a_file, ".*not supported.*"),
    ],
    ids=["types", "attribute", "name", "statement"],
)
def test_a_reward_that_does_not_compile_is_refused_with_one_line(function, cause):
    with pytest.raises(ValueError, match=f'^reward "mine" cannot be compiled: {cause}$') as refusal:
        compiled(function)(0.5, 1)
    assert "\n" not in str(refusal.value)


def refuses(x):
    if x > 5:
        if x > 6:
            pass
        raise ValueError("too\n  much")
    return x


@pytest.mark.parametrize(
    ("function", "place", "cause"),
    [
        ("decorated", 4, "KeyError"),
        ("through another", None, "ValueError: too much"),
        ("from a prompt", 2, "IndexError: 3"),
    ],
)
def test_what_a_reward_raises_in_compiled_code_is_one_line_with_its_place(tmp_path, function, place, cause):
    texts = {
        "decorated": "unchanged = lambda f: f\n@unchanged\ndef reward(M_next: float) -> float:\n    raise KeyError\n",
        "from a prompt": "def reward(M_next):\n    raise IndexError(3)",
    }
    if function == "through another":
        file, place = __file__, refuses.__code__.co_firstlineno + 4

        def reward(M_next):
            return refuses(M_next)  # of its file
    elif function == "from a prompt":
        file, reward = "<string>", from_a_prompt(texts[function])
    else:
        file = str(tmp_path / "mine.py")
        linecache.cache[file] = 0, None, texts[function].splitlines(keepends=True), file
        names = {}
        exec(compile(texts[function], file, "exec"), names)
        reward = names["reward"]
    with pytest.raises(ValueError, match="failed") as refusal:
        compiled(reward)(7.5, 1)
    assert str(refusal.value) == f'reward "mine" failed: {file}, line {place}, {cause}'


def test_a_division_by_zero_gives_infinity_and_raises_nothing():
    assert compiled(lambda visits: 1 / (visits - 1), ("visits",))(0.5, 1) == math.inf


def test_a_run_sees_what_its_reward_means_now(monkeypatch):

    @spie.reward("mine")
    def mine():
        return SCALE

    agent = spie.Sarsa(reward="mine")
    assert agent.run(spie.riverswim(), 10).total_bonus == 30
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert agent.run(spie.riverswim(), 10).total_bonus == 40


def test_the_next_process_finds_the_compiled_kernel(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import spie\n"
        "WEIGHT = 2.0\n"
        "@spie.reward('mine')\n"
        "def mine(M_next): return WEIGHT * M_next\n"
        "print(spie.Sarsa(reward='mine').run(spie.riverswim(), 100, 5).total_bonus.tolist())\n"
    )
    cache = tmp_path / "cache"
    run = partial(subprocess.check_output, [sys.executable, program], env={**os.environ, "SPIE_CACHE": str(cache)})
    first = run()
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.*")}
    assert {path.suffix for path in files} == {".py", ".nbi", ".nbc"}
    assert run() == first
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.*") if path.suffix != ".pyc"} == files

    program.write_text(program.read_text().replace("2.0", "4.0"))
    assert run() != first
    assert len(list(cache.rglob("*.nbc"))) == 2


def test_processes_that_need_one_kernel_compile_it_once(tmp_path):
    program = (
        "import spie\n"
        "from numba.core.caching import Cache\n"
        "save, saved = Cache.save_overload, []\n"
        "Cache.save_overload = lambda *args: (saved.append(1), save(*args))\n"
        "spie.Sarsa(reward='none').run(spie.riverswim(), 3)\n"
        "print(len(saved))\n"
    )
    run = partial(subprocess.Popen, [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    both = [run(env={**os.environ, "SPIE_CACHE": str(tmp_path)}) for _ in range(2)]
    assert sorted(process.communicate()[0].strip() for process in both) == ["0", "1"]


def test_kernels_go_to_a_temporary_folder_where_no_other_can_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPIE_CACHE", str(tmp_path / "file"))
    folder = cache_folder()
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    folder.rmdir()
    monkeypatch.delenv("SPIE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "spie" / "kernels"


def test_the_cache_is_private_because_it_holds_code(tmp_path, monkeypatch):
    monkeypatch.setenv("SPIE_CACHE", str(tmp_path))
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    (tmp_path / "kernels").chmod(0o755)  # as earlier versions made it
    assert cache_folder().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("mode", "owner", "why"),
    [(0o770, 0, "can be written to by others"), (0o707, 0, "can be"), (0o700, 1, "belongs to another user")],
)
def test_a_cache_that_others_can_write_to_is_refused_in_one_line(tmp_path, monkeypatch, mode, owner, why):
    monkeypatch.setenv("SPIE_CACHE", str(tmp_path))
    cache_folder().chmod(mode)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + owner)
    with pytest.raises(ValueError, match=f"kernels {why}.*remove it, or set SPIE_CACHE to a folder of yours"):
        cache_folder()
