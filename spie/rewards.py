"""Every intrinsic reward of the paper, one plain function each.

A reward is arithmetic on a few numbers that the learner already has. It asks for them by parameter name, and what it
does not name is not maintained for it. `s` is the state left, `s'` the state entered:

    M_next       M[s, s']            SR of s' from s
    M_row        sum of M[s, :]      how much follows s
    M_col_next   sum of M[:, s']     how easily s' is reached, from anywhere
    F_row        sum of F[s, :]      FR of s
    F_row_next   sum of F[s', :]     FR of s'
    N_next       N[s, s']            PR: how often s came before s'
    N_col_next   sum of N[:, s']     how much came before s'
    visits       times in s so far   the first state of an episode counts
    visits_next  times in s' so far  this arrival counts

With features in place of tables:

    psi_norm       |psi(s, a)|_1     SF of the state left and the action taken
    xi_norm_next   |xi(s')|_1        PF of the state entered
    phi_norm_next  |phi(s')|_1       the features themselves, which have an L2 norm of 1
    visits_next    times in the cell of s' so far, on a grid of cells laid over the space

The functions work on numbers and on arrays alike. To add a reward, write a function under `@reward("name")`:
engine, wrappers and command line know it from then on.
"""

import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from spie.errors import unknown

QUANTITIES = (
    "M_next",
    "M_row",
    "M_col_next",
    "F_row",
    "F_row_next",
    "N_next",
    "N_col_next",
    "visits",
    "visits_next",
)
FEATURE_QUANTITIES = ("psi_norm", "xi_norm_next", "phi_norm_next", "visits_next")

Number: TypeAlias = Any  # a number, or an array of them
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Reward:
    """An intrinsic reward by name, and the quantities it is computed from."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]

    @property
    def on_tables(self) -> bool:
        """Whether a learner with a table of states has all that it asks for."""
        return set(self.needs) <= set(QUANTITIES)

    @property
    def on_features(self) -> bool:
        """Whether a learner with features of a continuous state has all that it asks for."""
        return set(self.needs) <= set(FEATURE_QUANTITIES)

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


_REWARDS: dict[str, Reward] = {}


def reward(name: str) -> Callable[[Function], Function]:
    """Decorator that makes a function known as the intrinsic reward `name`.

        @spie.reward("bottleneck")
        def bottleneck(M_next, N_next):
            return N_next - M_next

    The parameter names say what it needs (see the module's docstring). A name of your own may be defined again,
    as happens in notebooks; a built-in one may not.
    """

    def register(function: Function) -> Function:
        needs = tuple(inspect.signature(function).parameters)
        for need in needs:
            if need not in QUANTITIES + FEATURE_QUANTITIES:
                raise ValueError(
                    f'reward "{name}" asks for "{need}", which no learner has. '
                    f"It may ask for: {', '.join(QUANTITIES)}; on features: {', '.join(FEATURE_QUANTITIES)}"
                )
        if not set(needs) <= set(QUANTITIES) and not set(needs) <= set(FEATURE_QUANTITIES):
            raise ValueError(f'reward "{name}" asks for {", ".join(needs)}: no learner has tables and features at once')
        if name in _REWARDS and _REWARDS[name].function.__module__ == __name__ != function.__module__:
            raise ValueError(f'"{name}" is a built-in reward; give yours another name')
        _REWARDS[name] = Reward(name, function, needs)
        return function

    return register


def get_reward(name: str, on: Literal["tables", "features"] | None = None) -> Reward:
    """The reward known as `name`, which a learner `on` tables or features can compute."""
    if name not in _REWARDS:
        raise unknown("intrinsic reward", name, reward_names(on))
    if name not in reward_names(on):
        raise ValueError(
            f'reward "{name}" needs {", ".join(_REWARDS[name].needs)}, which a learner on {on} does not have. '
            f"On {on} there are: {', '.join(reward_names(on))}"
        )
    return _REWARDS[name]


def reward_names(on: Literal["tables", "features"] | None = None) -> tuple[str, ...]:
    """All known reward names, or those that a learner `on` tables or features can compute, in order of definition."""
    return tuple(name for name, reward in _REWARDS.items() if on is None or getattr(reward, f"on_{on}"))


_FILES: dict[str, str] = {}  # of users, by name: text that workers in other processes must have as well


def load_rewards(file: str | Path) -> None:
    """Run a file of yours that defines rewards; workers in other processes and on other machines get it, too."""
    try:
        adopt({str(Path(file).resolve()): Path(file).read_text(encoding="utf-8")})
    except (SyntaxError, ImportError, NameError) as error:
        raise ValueError(f"{file} cannot be loaded: {error}") from error


def adopt(files: Mapping[str, str]) -> None:
    """Files with rewards, name and text, run in this process, each once."""
    for name, text in files.items():
        if _FILES.get(name) == text:
            continue
        # Where a function's text is looked up, so that it can be compiled where there is no such file.
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        module = types.ModuleType(Path(name).stem)
        exec(compile(text, name, "exec"), module.__dict__)
        _FILES[name] = text


def files() -> dict[str, str]:
    """The files that were loaded in this process."""
    return dict(_FILES)


def own_text(name: str) -> str:
    """What defines a reward that is not built in: the text of its file, or else its code. Empty for a built-in one."""
    function = _REWARDS[name].function if name in _REWARDS else none
    if function.__module__ == __name__:
        return ""
    return "".join(linecache.getlines(function.__code__.co_filename)) or repr(
        (function.__code__.co_code, function.__code__.co_consts)
    )


@reward("none")
def none() -> Number:
    """No intrinsic reward: plain SARSA."""
    return 0.0


@reward("sr")
def sr(M_row: Number) -> Number:
    """1 / |M[s, :]|: high where little follows, which is where visits are few."""
    return 1.0 / M_row


@reward("fr")
def fr(F_row: Number) -> Number:
    """|F[s, :]|: high where many states are soon reached for the first time."""
    return F_row


@reward("fr-next")
def fr_next(F_row_next: Number) -> Number:
    """|F[s', :]|: the first-occupancy reward on the state entered, the other reading of r_FR."""
    return F_row_next


@reward("sr-r")
def sr_r(M_next: Number, M_col_next: Number) -> Number:
    """M[s, s'] - |M[:, s']|: the SPIE reward; it avoids states that many others lead to (eq. 8)."""
    return M_next - M_col_next


@reward("sr-r(a)")
def sr_r_a(M_next: Number) -> Number:
    """M[s, s']: the prospective half of SR-R alone (eq. 22)."""
    return M_next


@reward("sr-r(b)")
def sr_r_b(M_col_next: Number) -> Number:
    """-|M[:, s']|: the retrospective half of SR-R alone (eq. 22)."""
    return -M_col_next


@reward("sr-r(c)")
def sr_r_c(M_row: Number, M_next: Number) -> Number:
    """|M[s, :]| - M[s, s']: towards what is hard to reach from s, with no word on bottlenecks (eq. 23)."""
    return M_row - M_next


@reward("sr-pr")
def sr_pr(M_next: Number, N_col_next: Number) -> Number:
    """M[s, s'] - |N[:, s']|: SR-R with the PR in place of the SR's column."""
    return M_next - N_col_next


@reward("sf")
def sf(psi_norm: Number) -> Number:
    """1 / |psi(s, a)|: r_SR on features; high where little is known of what follows."""
    return 1.0 / psi_norm


@reward("sf-pf")
def sf_pf(psi_norm: Number, xi_norm_next: Number) -> Number:
    """1 / |xi(s')| - 1 / |psi(s, a)|: the SPIE reward on features (eq. 16, as its text says)."""
    return 1.0 / xi_norm_next - 1.0 / psi_norm


@reward("sf-pf-printed")
def sf_pf_printed(psi_norm: Number, phi_norm_next: Number) -> Number:
    """1 / |phi(s')| - 1 / |psi(s, a)|: the same as its formula is printed, without a predecessor (eq. 16)."""
    return 1.0 / phi_norm_next - 1.0 / psi_norm


@reward("sf-pf-norms")
def sf_pf_norms(psi_norm: Number, xi_norm_next: Number) -> Number:
    """|psi(s, a)| - |xi(s')|: a difference of norms, as SR-PR has; the paper found reciprocals better."""
    return psi_norm - xi_norm_next


@reward("constant")
def constant() -> Number:
    """-1: no representation at all; as a cost it makes Q = 0 optimistic (control, not in the paper)."""
    return -1.0


@reward("count")
def count(visits_next: Number) -> Number:
    """1 / sqrt(visits to s'): the classic count bonus (control, not in the paper)."""
    return 1.0 / np.sqrt(visits_next)
