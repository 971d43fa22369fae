"""What a comparison found: a row an arm, learning curves of the environment's reward, and the verdict."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.rows import Rows
from spie.comparison.arms import Arm
from spie.comparison.calibration import Calibration
from spie.comparison.verdict import against, p_value, solved, verdict
from spie.stats import estimate, improvement, mean_curve
from spie.trace import EpisodeTrace

BINS = 40  # of a learning curve
COLUMNS = (
    "arm", "reward per episode", "95 % from", "to", "seeds that get there", "chance to beat bare", "chance from",
    "chance to", "p", "setting",
)  # fmt: skip
BONUS_COLUMNS = (
    "arm", "sign", "mean per step", "rms per step", "outweighs the reward", "steps per episode",
    "episodes that end by themselves", "microseconds per step more than bare",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trained:
    """An arm with the settings that were chosen, on the seeds that confirm."""

    arm: Arm
    settings: Any
    traces: tuple[EpisodeTrace, ...]
    seconds: float  # of a processor, a step

    @property
    def scores(self) -> NDArray[np.float64]:
        """Reward per episode in the last third of the steps [seeds]."""
        return np.concatenate([trace.late_reward() for trace in self.traces])

    @property
    def setting(self) -> str:
        """What was chosen, for people."""
        names = [name for name, _ in self.arm.grid.axes]
        chosen = [(name, getattr(self.settings, name)) for name in names]
        return ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in chosen
        )

    def curves(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean, low and high of the reward per episode between steps [3, bins]."""
        return mean_curve(np.concatenate([trace.reward_by_steps(edges) for trace in self.traces]))

    @property
    def ended(self) -> tuple[float, float]:
        """Share of the episodes that terminated, and mean steps of an episode."""
        lengths = np.concatenate([trace.episode_steps[trace.episode_steps > 0] for trace in self.traces])
        ends = np.concatenate([trace.terminated[trace.episode_steps > 0] for trace in self.traces])
        return (float(ends.mean()), float(lengths.mean())) if len(lengths) else (0.0, float("nan"))

    @property
    def account(self) -> dict[str, float] | None:
        """What the bonus paid, beta in it; None for arms without."""
        rows = np.concatenate([trace.account for trace in self.traces if trace.account is not None])
        n, positive, negative, outweighed, total, squares = rows.sum(axis=0).tolist()
        if not n:
            return None
        names = ("positive", "negative", "outweighed", "mean", "rms")
        return dict(
            zip(names, (positive / n, negative / n, outweighed / n, total / n, (squares / n) ** 0.5), strict=True)
        )


@dataclass(frozen=True, eq=False)
class BonusComparison:
    """The answer to "does a bonus help on my task?", and all that it rests on."""

    env: str
    agent: str
    steps: int
    calibration: Calibration
    trained: tuple[Trained, ...]  # bare first
    tried: int  # settings in all
    choice_seeds: int
    notes: tuple[str, ...] = ()

    @property
    def seeds(self) -> int:
        return len(self.trained[0].scores)

    @property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        """By arm, reward per episode in the last third of the steps [seeds]; more is better."""
        return {one.arm.name: one.scores for one in self.trained}

    @property
    def seen_reward(self) -> bool:
        """Whether any seed of any arm met a reward other than 0."""
        traces = [trace for one in self.trained for trace in one.traces]
        broken = any(trace.under_way is not None and trace.under_way[:, 1].any() for trace in traces)
        return self.calibration.seen_reward or broken or any(trace.episode_rewards.any() for trace in traces)

    @property
    def random_reward(self) -> float:
        """What a random policy gets an episode; where none of its own ended, in one as long as those of bare."""
        played = self.calibration
        if played.episodes:
            return played.reward
        _, length = self.trained[0].ended
        return played.reward / len(played.steps) * (self.steps if math.isnan(length) else length)

    @property
    def verdict(self) -> list[str]:
        """Sentences, the answer first."""
        arms = [one.arm for one in self.trained]
        return verdict(arms, self.scores, self.random_reward, self.seen_reward)

    def table(self) -> Rows:
        """Reward per episode of every arm and how it compares with the bare agent; more is better."""
        scores, (bare, *_) = self.scores, self.trained
        signed = against(scores, "bare") if len(scores) > 1 else {}
        reach = solved(scores, self.random_reward)
        rows = []
        for one in self.trained:
            name = one.arm.name
            found = estimate(one.scores)
            row: dict[str, Any] = {"arm": name, "reward per episode": found.mean, "95 % from": found.low}
            row |= {"to": found.high, "seeds that get there": None if reach is None else reach[1][name]}
            if one is not bare:
                chance, low, high = improvement(one.scores, bare.scores)
                row |= {"chance to beat bare": chance, "chance from": low, "chance to": high, "p": abs(signed[name])}
            rows.append(dict.fromkeys(COLUMNS) | row | {"setting": one.setting})
        bar = "" if reach is None else f"{reach[0]:.4g}, halfway from a random policy's reward to the best seed's"
        there = f"A seed gets there with {bar}. " if bar else ""
        note = (
            f"{self.seeds} fresh seeds. Reward per episode, the environment's own, in the last third of {self.steps:,} "
            f"steps: more is better. {there}Chance to beat bare: that a seed gets more than one of bare, above .5 is "
            "better; p by Mann-Whitney, corrected for the arms (Holm)."
        )
        return Rows(rows, f"{self.env}, {self.agent}", (note, *self.notes))

    def bonuses(self) -> Rows:
        """What each bonus paid, and what that did to episodes."""
        rows = []
        bare_seconds = self.trained[0].seconds
        for one in self.trained:
            share, length = one.ended
            row: dict[str, Any] = {"arm": one.arm.name}
            if (paid := one.account) is not None:
                sign = "cost" if paid["positive"] == 0 else "wage" if paid["negative"] == 0 else "both"
                row |= {"sign": sign, "mean per step": paid["mean"], "rms per step": paid["rms"]}
                row |= {"outweighs the reward": paid["outweighed"]}
            row |= {"steps per episode": length, "episodes that end by themselves": share}
            if one.seconds and bare_seconds:
                row["microseconds per step more than bare"] = 1e6 * (one.seconds - bare_seconds)
            rows.append(dict.fromkeys(BONUS_COLUMNS) | row)
        note = (
            "Of the bonus as it is paid, beta in it, over all steps of the confirmed seeds; beta falls to 0 in the "
            "course of a run. Outweighs the reward: share of steps on which |bonus| > |reward of the environment|."
        )
        return Rows(rows, "What each bonus did", (note, *early_ends(self.trained)))

    def curves(self) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Steps [bins], and by arm mean, low and high of the environment's reward per episode up to then [3, bins]."""
        edges = np.linspace(0, self.steps, BINS + 1)
        return edges[1:], {one.arm.name: one.curves(edges) for one in self.trained}

    def __repr__(self) -> str:
        arms = f"{len(self.trained)} arms x {self.seeds} seeds x {self.steps:,} steps"
        return f"Comparison of {arms} on {self.env}: {self.verdict[0]}"

    def __str__(self) -> str:
        return "\n".join([*self.verdict, "", str(self.table()), "", str(self.bonuses())])

    def _repr_html_(self) -> str:
        said = "".join(f"<p><b>{html.escape(line)}</b></p>" for line in self.verdict)
        return said + self.table()._repr_html_() + self.bonuses()._repr_html_()


def early_ends(trained: Sequence[Trained]) -> list[str]:
    """A sentence for each arm whose episodes end much earlier than the bare agent's, and worse: a cost buys ends."""
    said = []
    bare = trained[0]
    _, length = bare.ended
    for one in trained[1:]:
        own_share, own_length = one.ended
        paid = one.account
        earlier = own_length < 0.67 * length and own_share > 0
        if paid and paid["mean"] < 0 and earlier and one.scores.mean() < bare.scores.mean():
            p = p_value(one.scores, bare.scores)
            sure = "" if p < 0.05 else ", which the seeds cannot tell from chance"
            lengths = f"{own_length:.0f} steps against {length:.0f} of bare"
            said.append(f"{one.arm.name} ends episodes early: {lengths}, for less reward{sure}.")
    return said
