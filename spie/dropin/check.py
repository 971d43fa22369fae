"""`check_reward`: is an intrinsic reward sound? In the manner of Gymnasium's check_env, for what learns on the way."""

import copy
import dataclasses
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from spie.dropin.bonus import Bonus, env_name
from spie.dropin.gymnasium import COUNT_REWARDS, IntrinsicReward, VectorIntrinsicReward, bonus_below
from spie.dropin.known import OURS, bonus_names
from spie.dropin.scale import AverageReward
from spie.dropin.settings import Beta, Settings
from spie.dropin.teacher import NAMES as TEACHERS
from spie.errors import check_whole, unknown
from spie.representations import fr, pr, sr, stationary
from spie.rewards import REWARDS, get_reward, quantities
from spie.tasks import grid
from spie.tasks.mdp import MDP, MDPEnv

STREAMS = 4  # environments that a recording is dealt out to
EDGE_STEPS = 300
MANY = 1e12  # visits to a state "in the end"
NEARLY = 0.01  # below this share of its size at first, a spread counts as none
OUTWEIGHS = 10.0  # a bonus that is larger than the average reward by this factor

Played: TypeAlias = tuple[Any, Any, bool]  # action, next state, whether it terminated
Verdict: TypeAlias = tuple[str, str]  # "ok" or "note", and what was found


class Finding(NamedTuple):
    """One line of the table."""

    check: str
    verdict: str  # "ok", "note" or "FAULT"
    found: str


@dataclass(frozen=True)
class Recording:
    """What a uniform random policy met in an environment."""

    episodes: list[tuple[Any, list[Played]]]  # the first state, and the steps from there
    extrinsic: NDArray[np.float64]  # rewards of the environment itself, one per step

    @property
    def n_steps(self) -> int:
        return len(self.extrinsic)


@dataclass(frozen=True)
class CheckedReward:
    """A reward with its settings on an environment, and what happens there; nothing learns but what is made here."""

    env: gym.Env[Any, Any]
    settings: Settings
    features: Callable[[Any], Any] | None
    steps: int
    seed: int

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a wrapper, beside its environment."""
        return {**dataclasses.asdict(self.settings), "features": self.features}

    def fresh(self, n: int = 1) -> Bonus:
        """The bonus of n environments, which has not learned anything yet."""
        spaces = self.env.observation_space, self.env.action_space
        return Bonus(env_name(self.env), *spaces, n, self.settings, self.features)

    @functools.cached_property
    def recording(self) -> Recording:
        return record(IntrinsicReward(self.env, **self.options), self.steps, self.seed)

    @functools.cached_property
    def raw(self) -> NDArray[np.float64]:
        """The bonuses of the recording [steps], before any scaling."""
        return replay(self.fresh(), self.recording)

    @functools.cached_property
    def paid(self) -> tuple[NDArray[np.float64], float]:
        """What the recording pays [steps], beta in it, annealing apart; and the last beta."""
        bonus, paid, rewards = self.fresh(), [], iter(self.recording.extrinsic.tolist())
        for first, played in self.recording.episodes:
            bonus.begin(0, first)
            for action, s_next, ends in played:
                r_int = bonus.step(0, action, s_next, ends, next(rewards))
                paid.append(bonus.beta * r_int)
        return np.array(paid), bonus.beta


class Findings(list[Finding]):
    """What a check found; it was printed, so it shows itself in one line."""

    def __repr__(self) -> str:
        counts = Counter(finding.verdict for finding in self)
        return f"{len(self)} findings: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"


def check_reward(
    reward: str | gym.Env[Any, Any],
    env: gym.Env[Any, Any] | None = None,
    steps: int = 2000,
    seed: int = 0,
    beta: Beta = Settings.beta,
) -> Findings:
    """Check an intrinsic reward by name, or a wrapper with its settings, on an environment; print what was found.

    reward: a name, or an environment in which an IntrinsicReward is, below other wrappers or not.
    beta: where a name is checked; "auto" as in IntrinsicReward.
    env: by default the wrapper's own; for a name a maze of two rooms, or MountainCar where the reward needs features.
    Raises ValueError where the reward is at fault; a note is worth knowing and no fault. Nothing learns but copies.

    steps, seed: of the walk on which it is checked. Returns what was found.

    >>> found = spie.check_reward("sr-r", steps=300)  # doctest: +ELLIPSIS
    reward "sr-r" on MDPEnv...
    """
    check_whole("check_reward: steps", steps, 1)
    check_whole("check_reward: seed", seed, 0)
    findings = Findings()
    if isinstance(reward, str):
        here = _usual_env(reward) if env is None else env
        checked = CheckedReward(here, Settings(reward, beta), None, steps, seed)
    else:
        wrapper, above = bonus_below(reward)
        here = wrapper.env if env is None else env
        checked = CheckedReward(here, wrapper.bonus.settings, wrapper.bonus.features, steps, seed)
        for name in {*above} & {*COUNT_REWARDS}:
            counts = f"{name} above counts the bonus as reward; write IntrinsicReward({name}(env), ...)"
            findings.append(Finding("order", "note", counts))
    for check, verdicts in CHECKS.items():
        try:
            findings += [Finding(check, *verdict) for verdict in verdicts(checked)]
        except (ValueError, TypeError, AssertionError) as error:
            findings.append(Finding(check, "FAULT", str(error).partition("\n")[0]))
            if verdicts in (_episodes, _finite_numbers):
                break  # there is nothing to go on
    name = checked.settings.reward
    _print(f'reward "{name}" on {env_name(checked.env)}', findings)
    if faults := [finding for finding in findings if finding.verdict == "FAULT"]:
        raise ValueError(f'reward "{name}": {"; ".join(f"{fault.check}: {fault.found}" for fault in faults)}')
    return findings


def _usual_env(reward: str) -> gym.Env[Any, Any]:
    if reward not in REWARDS and reward not in OURS:
        raise unknown("intrinsic reward", reward, bonus_names())
    on_tables = reward in TEACHERS or (reward in REWARDS and get_reward(reward).on_episodes)
    return MDPEnv(grid("cluster-simple"), max_steps=500) if on_tables else gym.make("MountainCar-v0")


def record(env: IntrinsicReward, steps: int, seed: int) -> Recording:
    """Play at random; the wrapper must pay the sum of what it says, and leave observations and info alone."""
    env.action_space.seed(seed)
    episodes: list[tuple[Any, list[Played]]] = []
    extrinsic: list[float] = []
    options: dict[str, Any] = {"seed": seed}
    while sum(len(played) for _, played in episodes) < steps:
        observation, _ = env.reset(**options)
        options = {}
        played: list[Played] = []
        episodes.append((env.bonus.encode(observation), played))
        over = False
        while not over and len(extrinsic) < steps:
            action = env.action_space.sample()
            observation, r, terminated, truncated, info = env.step(action)
            own, added = info["extrinsic_reward"], env.bonus.beta * info["intrinsic_reward"]
            assert isinstance(r, float), f"the reward is {type(r).__name__}, not a float"
            assert r == (added if env.bonus.settings.replace else own + added), f"{r} is not {own} + {added}"
            assert env.observation_space.contains(observation), f"{observation} is not in the observation space"
            played.append((action, env.bonus.encode(observation), terminated))
            extrinsic.append(own)
            over = terminated or truncated
    return Recording(episodes, np.array(extrinsic))


def replay(bonus: Bonus, recording: Recording) -> NDArray[np.float64]:
    """The raw bonuses of a recording [steps]."""
    raw, rewards = [], iter(recording.extrinsic.tolist())
    for first, played in recording.episodes:
        bonus.begin(0, first)
        for action, s_next, ends in played:
            bonus.step(0, action, s_next, ends, next(rewards))
            raw.append(bonus.raw[0])
    return np.array(raw)


def _episodes(checked: CheckedReward) -> Iterator[Verdict]:
    """Does the wrapper pay the sum of what it says?"""
    episodes = checked.recording.episodes
    ended = sum(played[-1][2] for _, played in episodes if played)
    found = f"{checked.recording.n_steps} steps, episodes"
    yield "ok", f"{found}: {ended} terminated, {len(episodes) - ended} truncated or still under way"


def _finite_numbers(checked: CheckedReward) -> Iterator[Verdict]:
    yield "ok", f"{len(checked.raw)} bonuses, one number each"


def _repeats(checked: CheckedReward) -> Iterator[Verdict]:
    assert np.allclose(checked.raw, replay(checked.fresh(), checked.recording), rtol=1e-6), (
        "the same steps give other bonuses: it depends on more than what it asks for"
    )
    yield "ok", "the same steps give the same bonuses"


def _order(checked: CheckedReward) -> Iterator[Verdict]:
    """Is the bonus the same whichever environment a step is taken in?"""
    streams = _dealt(checked.recording)
    length = min(200, *map(len, streams))
    found = []
    for order in (list(range(STREAMS)), list(reversed(range(STREAMS)))):
        bonus, raw = checked.fresh(STREAMS), []
        for t in range(length):
            states, *steps = zip(*(streams[i][t] for i in order), strict=True)
            for i in range(STREAMS):
                bonus.begin(i, states[i])
            bonus.steps_of(range(STREAMS), *steps)
            raw.append([bonus.raw[order.index(i)] for i in range(STREAMS)])
        found.append(np.array(raw))
    straight, turned = found
    assert np.allclose(straight, turned, rtol=1e-3, atol=1e-12), "the bonus depends on the order of the environments"
    yield "ok", "in any order the same bonuses"


def _dealt(recording: Recording) -> list[list[Any]]:
    """The steps (s, action, s', terminated, r) of a recording, its episodes dealt out to several environments."""
    streams: list[list[Any]] = [[] for _ in range(STREAMS)]
    rewards = iter(recording.extrinsic.tolist())
    for e, (first, played) in enumerate(recording.episodes):
        s = first
        for action, s_next, ends in played:
            streams[e % STREAMS].append((s, action, s_next, ends, next(rewards)))
            s = s_next
    if len(recording.episodes) < STREAMS:  # divide what there is into pieces
        whole = [step for stream in streams for step in stream]
        streams = [whole[i * len(whole) // STREAMS : (i + 1) * len(whole) // STREAMS] for i in range(STREAMS)]
    return streams


def _edges(checked: CheckedReward) -> Iterator[Verdict]:
    """The same actions in the environment alone and in a vector, which resets itself in one of three ways."""
    env, options, seed = checked.env, checked.options, checked.seed
    try:
        copies = [copy.deepcopy(env) for _ in range(1 + len(AutoresetMode))]
    except Exception as error:  # whatever an environment holds that cannot be copied
        yield "note", f"not checked, for the environment cannot be copied ({type(error).__name__})"
        return
    env.action_space.seed(seed)
    actions = [env.action_space.sample() for _ in range(EDGE_STEPS)]
    alone = IntrinsicReward(copies[0], **options)
    alone.reset(seed=seed)
    expected, resets = [], 0
    for action in actions:
        _, _, terminated, truncated, info = alone.step(action)
        expected.append(info["intrinsic_reward"])
        if terminated or truncated:
            alone.reset()
            resets += 1
    for mode, one in zip(AutoresetMode, copies[1:], strict=True):
        makers = [functools.partial(_given, one)]
        vector = VectorIntrinsicReward(SyncVectorEnv(makers, autoreset_mode=mode), **options)
        vector.reset(seed=seed)
        found: list[float] = []
        while len(found) < len(actions):
            _, _, ended, stopped, info = vector.step(np.array([actions[len(found)]]))
            found += info["intrinsic_reward"][info["_intrinsic_reward"]].tolist()
            if mode == AutoresetMode.DISABLED and (ended | stopped).any():
                vector.reset(options={"reset_mask": ended | stopped})
        assert np.allclose(found, expected, rtol=1e-6), f"paid differently in a vector with autoreset {mode.value}"
    if resets == 0:
        yield "note", f"no episode ended within {EDGE_STEPS} random steps: the same bonuses alone and in a vector"
        return
    yield "ok", f"{resets} episodes reset by hand and in three ways by a vector: the same bonuses"


def _given(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    return env


def _scale(checked: CheckedReward) -> Iterator[Verdict]:
    """The bonus beside the environment's own reward: how large each is, and how often the bonus is the larger."""
    raw, own = checked.raw, checked.recording.extrinsic
    paid, beta = checked.paid
    size, of_bonus = (float(np.sqrt(np.mean(x**2))) for x in (raw, paid))
    said = f"beta {beta:.3g}" + (" (auto)" if checked.settings.beta == "auto" else "")
    found = f"root mean square {size:.3g}, from {raw.min():.3g} to {raw.max():.3g}; times {said}"
    average = AverageReward()
    for r in own.tolist():
        average.observe([r])
    if not own.any():
        yield "ok", f"{found}: {of_bonus:.3g} a step, and no reward of the environment was seen to compare it with"
        return
    share = float((np.abs(paid) > np.abs(own)).mean())
    found += f": {of_bonus:.3g} a step, against {average.scale:.3g} of the environment; larger on {share:.0%} of steps"
    outweighs = of_bonus > OUTWEIGHS * average.scale and not checked.settings.replace
    yield "note" if outweighs else "ok", found + '; it outweighs the reward: lower beta, or beta="auto"' * outweighs


def _sign(checked: CheckedReward) -> Iterator[Verdict]:
    raw = checked.raw
    ended = sum(played[-1][2] for _, played in checked.recording.episodes if played)
    neutral = checked.settings.ends == "neutral"
    if raw.any() and raw.max() <= 0:
        pays = '; it pays for ending an episode: ends="neutral" does not' if ended and not neutral else ""
        yield "note", f"never positive: Q = 0 is optimistic for it, and an agent may end an episode early{pays}"
    elif raw.any() and raw.min() >= 0:
        pays = '; ends="neutral" makes up for it' if ended and not neutral else ""
        yield "note", f"never negative: an agent gains by not ending an episode{pays}"


def _terms(checked: CheckedReward) -> Iterator[Verdict]:
    """Does each number that the reward asks for change what it pays?"""
    bonus = checked.fresh()
    needs, function = bonus.reward.needs, bonus.reward.function
    if not needs:
        yield "ok", "it asks for nothing"
        return
    table = _quantities(bonus, checked.recording)

    def paid(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([float(function(*row)) for row in rows.tolist()])

    as_it_is = paid(table)
    useful = []
    for i, need in enumerate(needs):
        other, constant = table.copy(), table.copy()
        other[:, i] = 1.5 * other[:, i] + 1
        constant[:, i] = table[:, i].mean()
        if np.array_equal(paid(other), as_it_is):
            yield "note", f"{need} never changes what it pays: leave it out"
        elif np.allclose(paid(constant), as_it_is, rtol=1e-9, atol=1e-12):
            yield "note", f"{need} was the same in all {len(table)} steps, so it made no difference"
        else:
            useful.append(need)
    if useful:
        yield "ok", f"{', '.join(useful)}: each makes a difference"


def _quantities(bonus: Bonus, recording: Recording) -> NDArray[np.float64]:
    """What the reward asks for at every step of a recording [steps, needs]."""
    values: list[Sequence[float]] = []
    for first, played in recording.episodes:
        s = first
        bonus.begin(0, first)
        for action, s_next, ends in played:
            values.append(bonus.learner.step(s, bonus.action(action), s_next, 0.0 if ends else 1.0))
            s = s_next
    return np.array(values)


def _in_the_end(checked: CheckedReward) -> Iterator[Verdict]:
    """Does the bonus become the same everywhere once the representation is learned?"""
    bonus, raw = checked.fresh(), checked.raw
    size = float(np.ptp(raw))
    if size == 0:
        yield "note", f"it is {raw[0]:g} at every step: a control, it tells no step from another"
        return
    exact = _exact(checked.env, bonus)
    if exact is not None:
        spread, how = float(np.ptp(exact)), "exact representation of the random walk"
    else:
        for _ in range(5):
            last = replay(bonus, checked.recording)
        spread, how = float(np.ptp(last)), "the same steps learned from five times"
    compared = f"({how}: spread {spread:.2g}, at first {size:.2g})"
    if spread < NEARLY * size:
        yield "note", f"becomes constant as it is learned {compared}"
    else:
        yield "ok", f"still tells steps apart when it is learned {compared}"


def _exact(env: gym.Env[Any, Any], bonus: Bonus) -> NDArray[np.float64] | None:
    """The bonus of every possible step, from closed forms; None where there is no table, or no closed form."""
    try:
        raw_env: Any = env.unwrapped
        mdp = raw_env.mdp if isinstance(raw_env, MDPEnv) else MDP.from_gymnasium(env)
    except (ValueError, AttributeError):
        return None
    if mdp.n_states > 1000 or not bonus.reward.on_tables or not isinstance(env.observation_space, gym.spaces.Discrete):
        return None
    rates, P, ends = bonus.settings.rates, mdp.transition(), mdp.terminal[0]
    terminal = ends if ends.any() else None
    s, s_next = np.nonzero((P > 0) & ~ends[:, None])
    try:
        M, F, visits = sr(P, rates.gamma_sr, terminal), fr(P, rates.gamma_sr, terminal), MANY * stationary(P)
        N = pr(P, rates.gamma_pr, terminal) if "N" in bonus.reward.matrices else None
    except ValueError:  # no unique or no positive stationary distribution
        return None
    of = quantities(M, F, N, visits, s, s_next)
    columns = [of[need].tolist() for need in bonus.reward.needs]
    with np.errstate(all="ignore"):
        try:
            exact = np.array([float(bonus.reward.function(*values)) for values in zip(*columns, strict=True)])
        except ZeroDivisionError:
            return None
    return exact if np.isfinite(exact).all() else None


def _speed(checked: CheckedReward) -> Iterator[Verdict]:
    """CPU time a step, the best of three replays; what reading an observation costs is left out."""
    best = math.inf
    for _ in range(3):
        bonus = checked.fresh()
        begin = time.process_time()
        replay(bonus, checked.recording)
        best = min(best, time.process_time() - begin)
    yield "ok", f"{1e6 * best / checked.recording.n_steps:.1f} microseconds per step, on top of the environment"


CHECKS: dict[str, Callable[[CheckedReward], Iterator[Verdict]]] = {
    "episodes": _episodes,
    "finite numbers": _finite_numbers,
    "repeats": _repeats,
    f"1 and {STREAMS} environments": _order,
    "episode edges": _edges,
    "scale": _scale,
    "sign": _sign,
    "terms": _terms,
    "in the end": _in_the_end,
    "speed": _speed,
}


def _print(title: str, findings: Sequence[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", box=None)
    for column in Finding._fields:
        table.add_column(column)
    for finding in findings:
        table.add_row(*map(escape, finding))
    Console().print(table)
