"""Recorded behaviour that an agent follows: what a run takes in place of its own choices."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spie.errors import is_row, told

Trials = Sequence[Sequence[ArrayLike]]  # [subjects][trials][steps]


@dataclass(frozen=True, eq=False)
class Replay:
    """Recorded behaviour. The agent does not choose; it learns all the same.

    Two forms:

    `Replay(actions)`, whole numbers [steps] or [seeds, steps]: these are taken, and the MDP answers.

    `Replay(states=..., actions=..., rewards=..., mazes=...)`, each [subjects][trials][...]: what happened is given,
    also where the MDP is stochastic. A trial of n steps has n + 1 states, the first of them its own start, n actions
    and n rewards. Without actions, or where one is -1, only the move is known: all actions that may have made it count
    in its probability, each by its chance to do so, and the one that is most likely to make it (the first of several)
    is the one that is learned about. Without rewards they are the MDP's. `mazes` [subjects][trials] is the number of
    each trial's maze where a run is given several MDPs with the same states; learning carries on from one to the next.
    `subjects` are names for messages, "1", "2", ... if none are given.

    A run then takes `steps=replay.steps` and `seeds=replay.n_subjects`: each subject is one lane.

    Q is SARSA along the recording: a' is the action recorded next, which is `next_action="carry"`, whatever the
    settings say: with "resample" the agent draws an a' of its own, which nobody recorded. After the last action of a
    trial that does not end in a terminal state there is no a': Q bootstraps on its mean under the policy.

    Raises ValueError for what the MDP cannot have done, with subject, trial and step.

    >>> maze = spie.grid("cluster-simple")
    >>> trace = spie.Sarsa().run(maze, steps=3, replay=spie.Replay([1, 1, 2]))  # right, right, down
    >>> [maze.labels[s] for s in np.flatnonzero(trace.visits[0])]
    ['0,0', '0,1', '0,2', '1,2']
    """

    actions: Any = None
    states: Trials | None = None
    rewards: Trials | None = None
    mazes: Sequence[Sequence[int]] | None = None
    subjects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.subjects, str) or not isinstance(self.subjects, Sequence):
            raise ValueError(f"replay: subjects must be names, not {told(self.subjects)}")
        if self.states is not None:
            for what in ("states", "actions", "rewards", "mazes"):
                _check_nested(what, getattr(self, what))
            object.__setattr__(self, "subjects", tuple(map(str, self.subjects or range(1, len(self.states) + 1))))
            self.trials()  # is looked at now, so that what is wrong is said here
            return
        if self.rewards is not None or self.mazes is not None or self.subjects:
            raise ValueError("replay: rewards, mazes and subjects go with states")
        try:
            actions = np.asarray(self.actions)
        except ValueError:
            raise ValueError("replay: trials of different lengths need their states, too: Replay(states=...)") from None
        if actions.ndim not in (1, 2) or actions.size == 0 or actions.dtype.kind not in "iu":
            what = f"{actions.dtype} {list(actions.shape)}"
            raise ValueError(f"replay: actions must be whole numbers [steps] or [seeds, steps], not {what}")
        object.__setattr__(self, "actions", actions)

    @property
    def given(self) -> bool:
        """Whether states are given, and not the actions alone."""
        return self.states is not None

    @property
    def n_subjects(self) -> int:
        return len(self.subjects)

    @functools.cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of steps of each subject."""
        trials = self.trials()
        return np.bincount(trials["subject"], trials["steps"], minlength=self.n_subjects).astype(np.int64)

    @property
    def steps(self) -> int:
        """The number of steps of the subject that has most of them."""
        return int(self.lengths.max())

    def trials(self) -> NDArray[Any]:
        """A row for each trial: subject, trial (both from 0), maze, steps, and where its states begin in `moments`."""
        rows: NDArray[Any] = self._flat[0]
        return rows

    def moments(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """All states one after the other; action and reward of the step that leaves each, -1 and NaN for none known."""
        _, states, actions, rewards = self._flat
        return states, actions, rewards

    @functools.cached_property
    def _flat(self) -> tuple[Any, ...]:
        assert self.states is not None
        if len(self.states) == 0:
            raise ValueError("replay: no subjects")
        if len(self.subjects) != len(self.states):
            raise ValueError(f"replay: {len(self.subjects)} names for {len(self.states)} subjects")
        rows, first = [], 0
        states: list[ArrayLike] = []
        actions: list[ArrayLike] = []
        rewards: list[ArrayLike] = []
        for i, name in enumerate(self.subjects):
            if len(self.states[i]) == 0:
                raise ValueError(f"replay: subject {name} has no trials")
            for what in ("actions", "rewards", "mazes"):
                given = getattr(self, what)
                if given is not None and (len(given) <= i or len(given[i]) != len(self.states[i])):
                    n = len(self.states[i])
                    raise ValueError(f"replay: subject {name} has {n} trials of states; give as many of {what}")
            for k in range(len(self.states[i])):
                where = f"subject {name}, trial {k + 1}"
                path = _numbers(self.states[i][k], "states", where)
                n = len(path) - 1
                if n < 1:
                    raise ValueError(f"replay: {where} has no step; leave it out")
                states.append(path)
                for flat, given, what, none in (
                    (actions, self.actions, "actions", -1), (rewards, self.rewards, "rewards", np.nan),
                ):  # fmt: skip
                    values = np.full(n, none) if given is None else _numbers(given[i][k], what, where)
                    if len(values) != n:
                        raise ValueError(f"replay: {where} has {n} steps, but {len(values)} {what}")
                    flat += [values, [none]]
                rows.append((i, k, 0 if self.mazes is None else self.mazes[i][k], n, first))
                first += n + 1
        fields = [(name, np.int64) for name in ("subject", "trial", "maze", "steps", "first")]
        return np.array(rows, fields), *map(np.concatenate, (states, actions, rewards))


def _check_nested(what: str, values: Any) -> None:
    """Refuse what is not made of subjects, each made of trials; None is nothing given."""
    if values is not None and not (_is_row(values) and all(map(_is_row, values))):
        raise ValueError(f"replay: {what} must be [subjects][trials][steps], not {told(values)}")


def _is_row(values: Any) -> bool:
    return is_row(values) and isinstance(values, Sequence | np.ndarray)


def _numbers(values: ArrayLike, what: str, where: str) -> NDArray[Any]:
    """The numbers of a trial, checked."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.size == 0:
        array = array.astype(np.int64)
    whole = what != "rewards"
    if array.ndim != 1 or array.dtype.kind not in ("iu" if whole else "iufb"):
        raise ValueError(f"replay: {what} of {where} must be a sequence of {'whole ' * whole}numbers")
    if not whole and not np.isfinite(array).all():
        raise ValueError(f"replay: a reward of {where} is not finite")
    return array.astype(np.int64 if whole else np.float64)
