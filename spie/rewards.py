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

And what only an agent that knows its episode has, not a wrapper:

    F_episode_next   the largest F[x, s'] of the states x that were left in this episode, s among them

With features in place of tables:

    psi_norm       |psi(s, a)|_1     SF of the state left and the action taken
    xi_norm_next   |xi(s')|_1        PF of the state entered
    phi_norm_next  |phi(s')|_1       the features themselves, which have an L2 norm of 1
    visits_next    times in the cell of s' so far, on a grid of cells laid over the space

The functions work on numbers and on arrays alike. To add a reward, write a function under `@reward("name")`:
engine, wrappers and command line know it from then on.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from spie.errors import is_name, unknown
from spie.registry import Registry

MATRIX_OF = {  # the matrix that a quantity is read from
    "M_next": "M",
    "M_row": "M",
    "M_col_next": "M",
    "F_row": "F",
    "F_row_next": "F",
    "N_next": "N",
    "N_col_next": "N",
    "F_episode_next": "F",
}
EPISODE_QUANTITIES = ("F_episode_next",)
QUANTITIES = (*(name for name in MATRIX_OF if name not in EPISODE_QUANTITIES), "visits", "visits_next")
FEATURE_QUANTITIES = ("psi_norm", "xi_norm_next", "phi_norm_next", "visits_next")

Learner: TypeAlias = Literal["tables", "tables and episodes", "features"]
LEAST_F = 0.01  # an F below counts as this much
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
    def on_episodes(self) -> bool:
        """Whether an agent with a table of states that knows its episode has all that it asks for."""
        return set(self.needs) <= {*QUANTITIES, *EPISODE_QUANTITIES}

    def is_for(self, on: Learner | None) -> bool:
        """Whether a learner `on` tables or features can compute it; None: some learner can, which is always so."""
        able = {"tables": self.on_tables, "tables and episodes": self.on_episodes, "features": self.on_features}
        return on is None or able[on]

    @property
    def matrices(self) -> frozenset[str]:
        """Which of the matrices M, F and N it asks for something of."""
        return frozenset(MATRIX_OF[need] for need in self.needs if need in MATRIX_OF)

    @property
    def built_in(self) -> bool:
        """Whether it is one of this file, rather than of a plug-in or of the user."""
        return self.function.__module__ == __name__

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


REWARDS: Registry[Reward] = Registry("intrinsic reward")


def reward(name: str) -> Callable[[Function], Function]:
    """Decorator that makes a function known as the intrinsic reward `name`.

        @spie.reward("bottleneck")
        def bottleneck(M_next, N_next):
            return N_next - M_next

    The parameter names say what it needs (see the module's docstring). A name of your own may be defined again,
    as happens in notebooks; a built-in one may not.

    name: as in `Sarsa(reward=...)`, the wrappers and every command. Raises ValueError where a parameter is no quantity
    or the name is taken.

    >>> @spie.reward("predecessors-only")
    ... def predecessors_only(M_col_next):
    ...     return -M_col_next
    >>> spie.Sarsa(reward="predecessors-only").rewards
    ('predecessors-only',)
    """

    def register(function: Function) -> Function:
        needs = tuple(inspect.signature(function).parameters)
        for need in needs:
            if need not in (*QUANTITIES, *EPISODE_QUANTITIES, *FEATURE_QUANTITIES):
                raise ValueError(
                    f'reward "{name}" asks for "{need}", which no learner has. '
                    f"It may ask for: {', '.join(QUANTITIES + EPISODE_QUANTITIES)}; on features: "
                    f"{', '.join(FEATURE_QUANTITIES)}"
                )
        if not set(needs) <= {*QUANTITIES, *EPISODE_QUANTITIES} and not set(needs) <= set(FEATURE_QUANTITIES):
            raise ValueError(f'reward "{name}" asks for {", ".join(needs)}: no learner has tables and features at once')
        made = Reward(name, function, needs)
        REWARDS.add(name, made, again=made.built_in or name not in REWARDS or not REWARDS.get(name).built_in)
        return function

    return register


def get_reward(name: str, on: Learner | None = None) -> Reward:
    """The reward known as `name`, which a learner `on` tables or features can compute."""
    if not is_name(name) or name not in REWARDS:
        raise unknown("intrinsic reward", name, reward_names(on))
    found = REWARDS.get(name)
    if not found.is_for(on) and found.on_episodes and not found.on_tables:
        use = f'use spie.Sarsa(reward="{name}")'
        raise ValueError(f'reward "{name}" needs {", ".join(found.needs)}: only an agent knows its episode; {use}')
    if not found.is_for(on):
        where = "features" if on == "features" else "tables"
        raise ValueError(
            f'reward "{name}" needs {", ".join(found.needs)}, which a learner on {where} does not have. '
            f"On {where} there are: {', '.join(reward_names(on))}"
        )
    return found


def reward_names(on: Learner | None = None) -> tuple[str, ...]:
    """All known reward names, or those that a learner `on` tables or features can compute, in order of definition."""
    return tuple(name for name, reward in REWARDS.items() if reward.is_for(on))


def quantities(M: Any, F: Any, N: Any, visits: Any, s: Any, s_next: Any) -> dict[str, Number]:
    """The nine quantities of a step from s to s', or of arrays of such steps, from whole matrices and counts.

    Of a matrix that is None there are no quantities. Learners that take millions of steps keep running sums instead.
    """
    of: dict[str, Number] = {}
    if M is not None:
        of |= {"M_next": M[s, s_next], "M_row": M.sum(axis=1)[s], "M_col_next": M.sum(axis=0)[s_next]}
    if F is not None:
        of |= {"F_row": F.sum(axis=1)[s], "F_row_next": F.sum(axis=1)[s_next]}
    if N is not None:
        of |= {"N_next": N[s, s_next], "N_col_next": N.sum(axis=0)[s_next]}
    if visits is not None:
        of |= {"visits": visits[s], "visits_next": visits[s_next]}
    return of


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


@reward("etd")
def etd(F_episode_next: Number) -> Number:
    """min -log F[x, s'] over the states x of this episode: how far s' is from them (not in the paper)."""
    return -np.log(np.maximum(F_episode_next, LEAST_F))
