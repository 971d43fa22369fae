"""Which exploration works on pixels: novelty looked ahead to, its parts taken away one by one, and controls.

`spie` is `spie.agent("spie", task)` on images, that is `dqn-sp-novelty` with its usual settings. They were frozen after
a pilot on four-rooms with seeds 100 to 105, which are not among those reported. The agents without novelty and their
settings are those of `pixels`, whose runs they share. Two maps and DeepSea were in no trial. With noise the same maps
show a patch of random pixels beside them, or a second figure that walks about. One remedy was tried there: features
that are learned by inverse dynamics; 13 settings of that learning were looked at, on random walks of seeds 100 to 103,
by how alike pictures of one cell and of two become.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.agents.registry import agent as named
from spie.paper.beyond import pixels
from spie.paper.beyond.pixels import against, goals, late_success
from spie.paper.claims import Claim, Evidence, Measure, Runs
from spie.paper.contenders import Contender
from spie.paper.experiment import Experiment, in_blocks, states_seen
from spie.paper.measures import area, combined
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.sections import CurvePanels, Panel, Row, SectionPart, Table, Text, mean_curve, number
from spie.runs.run import Role, Run
from spie.tasks.registry import task as known_task

NAME = "exploration-pixels"
SNAKE = """\
S.........
#########.
..........
.#########
..........
#########.
..........
.#########
..........
#########G"""
STEPS = {"four-rooms": 30_000, "cluster-hard": 40_000}
HELD_OUT = {"cluster-simple-large": 40_000, "snake": 40_000, "deep-sea-10": 20_000}  # steps, in no trial
NOISES = ("patch", "walker")
BLOCK = 20  # seeds that train side by side in one run
REMEDIED = "four-rooms"  # where the remedy was tried
MAPS = {"snake": SNAKE}  # those that have no name of their own

ALIKE: dict[str, Any] = {
    "scale": "standard", "offset": -1.0, "bonus_at": "sampling", "draws": 8, "potential": True,
}  # fmt: skip
PAID = {"paid": "as spie"}  # the variant of a control that has the same scale, offset, replay and potential
OFF = {"reconstruction": "off"}
ABLATIONS: dict[str, tuple[str, dict[str, Any]]] = {  # what is left of spie beside plain novelty: agent and settings
    "no potential, 5-step returns": ("dqn-novelty", {"n_step": 5}),
    "potential with g = 0": ("dqn-sp-novelty", {"potential_gamma": 0.0}),
    "uniform replay": ("dqn-sp-novelty", {"draws": 1}),
}
REMEDY = {"features": "inverse dynamics"}  # of spie where there is noise
WITHOUT = ("dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf", "constant")  # whom spie is to beat


def runs(seeds: int) -> list[Run]:
    """What decides first, then the parts taken away, noise, maps that no trial saw, no reconstruction, a remedy."""
    parts = (_deciding, _of_pixels, _ablations, _noisy, _held_out, _no_reconstruction, _remedy)
    return [run for part in parts for run in in_blocks(part, pixels.BLOCK if part is _of_pixels else BLOCK)(seeds)]


def _deciding(seeds: int) -> list[Run]:
    return [run for env in STEPS for run in _ours(env, seeds)]


def _of_pixels(seeds: int) -> list[Run]:
    """The agents without novelty, in the blocks that they have there."""
    return [run for run in pixels.runs(seeds) if run.agent != "dqn"]


def _ours(env: str, seeds: int, noise: str = "none") -> list[Run]:
    return [
        _run(env, "spie", seeds, "dqn-sp-novelty", noise=noise),
        _run(env, "novelty", seeds, "dqn-novelty", noise=noise),
        _run(env, "count", seeds, "dqn-count", ALIKE, variant=PAID, noise=noise),
    ]


def _ablations(seeds: int) -> list[Run]:
    planned = []
    for env in STEPS:
        planned.append(_run(env, "constant", seeds, "dqn-constant", ALIKE, variant=PAID))
        for name, (agent, changes) in ABLATIONS.items():
            planned.append(_run(env, "spie", seeds, agent, changes, variant={"with": name}))
    return planned


def _few(env: str, seeds: int, noise: str = "none") -> list[Run]:
    """The same where few rivals will do."""
    rivals = {"dqn-mmc": "dqn-mmc", "constant": "dqn-constant", "rnd": "rnd"}
    return [*_ours(env, seeds, noise), *(_run(env, name, seeds, agent, noise=noise) for name, agent in rivals.items())]


def _noisy(seeds: int) -> list[Run]:
    return [run for env in STEPS for noise in NOISES for run in _few(env, seeds, noise)]


def _held_out(seeds: int) -> list[Run]:
    return [run for env in HELD_OUT for run in _few(env, seeds)]


def _no_reconstruction(seeds: int) -> list[Run]:
    off, agents = (
        {"reconstruction": False},
        {"spie": "dqn-sp-novelty", "dqn-mmc": "dqn-mmc", "constant": "dqn-constant"},
    )
    planned = []
    for env in STEPS:
        planned += [_run(env, name, seeds, agent, off, variant=OFF) for name, agent in agents.items()]
        planned.append(_run(env, "count", seeds, "dqn-count", ALIKE | off, variant=PAID | OFF))
    return planned


def _remedy(seeds: int) -> list[Run]:
    learned = {"novelty_encoder": "inverse-dynamics"}
    return [_run(REMEDIED, "spie", seeds, "dqn-sp-novelty", learned, REMEDY, noise) for noise in NOISES]


def _run(
    env: str,
    name: str,
    seeds: int,
    agent: str,
    changes: Mapping[str, Any] | None = None,
    variant: Mapping[str, Any] | None = None,
    noise: str = "none",
) -> Run:
    role: Role = "control" if name in ("constant", "count") else "paper"
    disturbed = {} if noise == "none" else {"noise": noise}
    task = known_task(MAPS.get(env, env), "images", **disturbed)
    where = env if noise == "none" else f"{env}, {noise}"
    steps = (STEPS | HELD_OUT)[env]
    return Run(
        where, name, named(agent, preset="small", **changes or {}), task, steps, seeds, role=role, variant=variant or {}
    )


# The ledger

SPIE, NOVELTY, ORACLE = Contender(NAME, "spie"), Contender(NAME, "novelty"), Contender(NAME, "count", PAID)
PLAIN, NOISY = tuple(STEPS), tuple(f"{env}, {noise}" for env in STEPS for noise in NOISES)


def more_success(rivals: Sequence[Contender], envs: Sequence[str]) -> Measure:
    """Late success of spie less that of the best rival, in each environment."""

    def measure(runs: Runs) -> list[Evidence]:
        parts = []
        for env in envs:
            theirs = {who: late_success(runs(who, env)) for who in rivals}
            best = max(rivals, key=lambda who: float(theirs[who].mean()))
            ours = late_success(runs(SPIE, env))
            parts.append(combined(f"{env} {best.label}", np.subtract, ours, theirs[best], floor=0.0))
        return parts

    return measure


def _twice(runs: Runs) -> list[Evidence]:
    """Late success less twice that of each rival, or less .9 where twice would be above 1."""
    parts = []
    for env in PLAIN:
        ours = late_success(runs(SPIE, env))
        for who in WITHOUT:
            theirs = late_success(runs(Contender(NAME, who), env))
            parts.append(combined(f"{env} {who}", _over_the_bar, ours, theirs, floor=0.0))
    return parts


def _over_the_bar(ours: Any, theirs: Any) -> Any:
    return ours - np.where(2 * theirs > 1, 0.9, 2 * theirs)


def _oracle(runs: Runs) -> list[Evidence]:
    both = {env: (area(runs(SPIE, env)), area(runs(ORACLE, env))) for env in PLAIN}
    return [combined(env, np.subtract, ours, theirs, floor=0.0) for env, (ours, theirs) in both.items()]


def _more_by_remedy(runs: Runs) -> list[Evidence]:
    parts = []
    for env in (f"{REMEDIED}, {noise}" for noise in NOISES):
        with_it, without = (late_success(runs(who, env)) for who in (Contender(NAME, "spie", REMEDY), SPIE))
        parts.append(combined(env, np.subtract, with_it, without, floor=0.0))
    return parts


_RIVALS = [Contender(NAME, who) for who in WITHOUT]
_FEW = [Contender(NAME, who) for who in ("dqn-mmc", "rnd", "constant")]  # that run everywhere
# fmt: off
CLAIMS = (
    Claim("spie-pixels-beats-all-controls", "Beyond the paper", "",
          "On pixels spie beats the constant, RND, the paper's agents and no bonus.",
          "late success less that of the best of no bonus, RND, SF, SF-PF and the constant, on each task: above 0",
          more_success(_RIVALS, PLAIN), ours=True),
    Claim("spie-pixels-twice", "Beyond the paper", "", "On pixels spie succeeds twice as often as each of them.",
          "late success less twice that of each rival, or less .9 where twice would exceed 1: above 0",
          _twice, ours=True),
    Claim("spie-pixels-oracle", "Beyond the paper", "",
          "On pixels spie sees more than a count of true states that is paid alike.",
          "share of the states seen, mean over steps, less the oracle's: above 0", _oracle, ours=True),
    Claim("spie-pixels-adds-to-novelty", "Beyond the paper", "", "The potential adds to plain novelty.",
          "late success less that of novelty without it, on each task: above 0",
          more_success([NOVELTY], PLAIN), ours=True),
    Claim("spie-pixels-held-out", "Beyond the paper", "",
          "On maps and a DeepSea that no trial saw, spie beats its controls on pixels.",
          "late success less that of the best of no bonus, RND and the constant, on each of them: above 0",
          more_success(_FEW, tuple(HELD_OUT)), ours=True),
    Claim("spie-pixels-survives-noise", "Beyond the paper", "", "On pixels with noise spie still beats its controls.",
          "late success less that of the best of no bonus, RND and the constant, on each noisy task: above 0",
          more_success(_FEW, NOISY), ours=True),
    Claim("spie-pixels-remedy", "Beyond the paper", "",
          "Features learned by inverse dynamics help spie where pixels are noisy.",
          "late success with them less that without, on FourRooms with patch and with walker: above 0",
          _more_by_remedy, ours=True),
)
# fmt: on


# The page


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Curves of the two tasks that decide, a table for each task, and whom spie beats."""
    found = results.found(experiment.key)
    panels = [panel for env in PLAIN if env in found for panel in _panels(env, found[env])]
    tables = [_table(env, cells) for env, cells in found.items()]
    return [
        Text("How it was done", SAID),
        CurvePanels("Mean and 95 % interval", panels),
        _overview(found),
        Text("spie against each", _said(found)),
        *tables,
    ]


SAID = (
    "States seen: share of the states, mean over the steps of a run. Late success: of the episodes that end in the "
    "last fifth of the steps, the share that reaches the goal. Means over seeds and their 95 % intervals.",
    "spie is DQN with sp-novelty. count paid as spie is an oracle: it counts true states, which no agent sees, and is "
    "scaled, offset, looked ahead to and replayed as spie's novelty is.",
    "Above and below, seed against seed: the 95 % interval of the chance that a seed of spie does better than one of "
    "the rival's leaves out one half. The ledger goes by differences of means, and the two need not agree.",
)


def _panels(env: str, cells: Mapping[str, Stored]) -> list[Panel]:
    x = np.linspace(0, STEPS[env], 51)
    shown = {name: one for name, one in cells.items() if not one.run.variant or one.run.variant == PAID}
    seen = {name: mean_curve(x, 100 * one.trace.coverage(x), one.look) for name, one in shown.items()}
    found = {name: mean_curve(x, goals(one.trace, x), one.look) for name, one in shown.items()}
    return [Panel(env, seen, "steps", "states seen, %"), Panel(env, found, "steps", "goals found so far")]


def _overview(found: Mapping[str, Mapping[str, Stored]]) -> Table:
    """Late success of the agents that run everywhere: a row for each task."""
    agents = ("spie", "novelty", ORACLE.label, *(who.label for who in _FEW))
    rows = []
    for env, cells in found.items():
        means = [100 * float(late_success(cells[name].trace).mean()) if name in cells else None for name in agents]
        rows.append(Row((env, *(number(mean, 1) for mean in means))))
    return Table("Late success on every task, mean in %", ("task", *agents), rows)


def _table(env: str, cells: Mapping[str, Stored]) -> Table:
    rows = []
    for name, (run, trace) in cells.items():
        measured = [100 * area(trace), 100 * late_success(trace)]
        values = [f"{e.mean:.1f} [{e.low:.1f}, {e.high:.1f}]" for e in map(stats.estimate, measured)]
        found = f"{int((trace.total_reward > 0).sum())} of {run.n_seeds}"
        kind = "control" if run.role == "control" else "total" if name == "spie" else ""
        rows.append(Row((name, *values, found), kind))
    steps = next(iter(cells.values())).run.steps
    columns = ("agent", "states seen, %", "late success, %", "seeds that found the goal")
    return Table(f"{env}: {number(steps)} steps", columns, rows)


def _said(found: Mapping[str, Mapping[str, Stored]]) -> list[str]:
    lines = []
    for env, cells in found.items():
        if "spie" in cells:
            rivals = {name: one.trace for name, one in cells.items() if not one.run.variant or one.run.variant == PAID}
            ours = rivals.pop("spie")
            for measure, values in {"states seen": area, "late success": late_success}.items():
                theirs = {name: values(trace) for name, trace in rivals.items()}
                if theirs:
                    lines.append(f"{env}, {measure}: {against(values(ours), theirs)}.")
    return lines


register_experiment(
    Experiment(
        NAME,
        "Which exploration works on pixels: spie, its parts, its controls (not in the paper)",
        section,
        runs,
        seeds=20,
        claims=CLAIMS,
        measure=states_seen,
        long=True,
        on="processes",
        ships=section,
        grows=True,
        keeps=False,
    )
)
