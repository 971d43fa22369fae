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

The functions work on numbers and on arrays alike. To add a reward, write a function under `@reward("name")`:
engine, wrappers and command line know it from then on.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

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

Number: TypeAlias = Any  # a number, or an array of them
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Reward:
    """An intrinsic reward by name, and the quantities it is computed from."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]

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
            if need not in QUANTITIES:
                raise ValueError(
                    f'reward "{name}" asks for "{need}", which no learner has. It may ask for: {", ".join(QUANTITIES)}'
                )
        if name in _REWARDS and _REWARDS[name].function.__module__ == __name__ != function.__module__:
            raise ValueError(f'"{name}" is a built-in reward; give yours another name')
        _REWARDS[name] = Reward(name, function, needs)
        return function

    return register


def get_reward(name: str) -> Reward:
    """The reward known as `name`."""
    if name not in _REWARDS:
        raise unknown("intrinsic reward", name, _REWARDS)
    return _REWARDS[name]


def reward_names() -> tuple[str, ...]:
    """All known reward names, in the order of their definition."""
    return tuple(_REWARDS)


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


@reward("constant")
def constant() -> Number:
    """-1: no representation at all; as a cost it makes Q = 0 optimistic (control, not in the paper)."""
    return -1.0


@reward("count")
def count(visits_next: Number) -> Number:
    """1 / sqrt(visits to s'): the classic count bonus (control, not in the paper)."""
    return 1.0 / np.sqrt(visits_next)
