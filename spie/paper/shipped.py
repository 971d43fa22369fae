"""Results that ship with the package: what long runs found, for readers who do not run them.

An experiment says in its own file what it ships. `ships` is called as `section` is, once the experiment is finished,
and gives parts of a section: `Table`, `Text` and `CurvePanels`, numbers and curves only. Often it is `section` itself:

    register_experiment(Experiment("tuned", "...", section, runs, seeds=1000, ships=section))

    spie run tuned --ship     # runs what is missing, then writes spie/results/tuned.json.gz
    spie run tuned --check    # runs a random tenth of it again: the same bits, or at least within the intervals?

Where an experiment says `grows=True`, its runs take hours, and the file need not have all of them. With --ship it is
written with what is stored, at once and after every run; it has all that these runs left, so on another machine, whose
store lacks them, `spie run NAME --ship` takes them from the file, runs others and adds those; what a run left that is
in the file of another experiment stays there and is taken from there. The page says which runs are missing. Where a
run has a block of seeds (`in_blocks`), more seeds are more runs: --seeds 2 adds to a file of one. With `keeps=False`
the file of very many runs has measures and digests alone, and grows only where the results are.

With a budget in frames, `spie run table2 --frames 1000000 --ship` writes a file of its own, table2@1000000.json.gz. The
page shows a file, marked with the day and the commit, beside what the user ran, and the verdicts on the experiment's
claims count where the user has none. All files together stay below `MOST_BYTES`.

A file is JSON, compressed (`zcat` shows it). It holds its format, the experiment, seeds, settings and a digest of every
run, the packages, processors and hours that made them, and the SHA-256 of all that. One that does not fit its hash is
refused. Where an agent has a newer version, or the experiment other runs, the file is shown as not run again since, and
counts in no verdict.
"""

import contextlib
import dataclasses
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.agents.base import identity
from spie.files import content_hash, json_hash, write_whole
from spie.paper.claims import NO_FIGURE, Claim, Judgement, judge
from spie.paper.contenders import label_of
from spie.paper.experiment import Experiment
from spie.paper.packed import decode, encode, pack, plain, unpack
from spie.paper.registry import claims as all_claims
from spie.paper.registry import experiment_of
from spie.paper.results import Results
from spie.paper.rules import NOT_RUN, RULES
from spie.paper.sections import CurvePanels, SectionPart, Table, Text
from spie.runs.run import Run, arrays_of, load, save
from spie.runs.store import Store
from spie.trace import Result, Scores

FORMAT = 3  # raised when a file says what an older spie would misread
FOLDER = Path(__file__).parents[1] / "results"
SUFFIX = ".json.gz"
MOST_BYTES = 2_000_000  # of all files
NAMED = 10  # missing runs are named up to this number, and counted above it
SAME, WITHIN, DIFFERS = "the same bits", "within the intervals", "differs"
OTHERWISE = "other bits, and measured otherwise since, so no intervals to compare"
LATER = (
    "reward_curve",
)  # what traces did not have when some files were made that do not say what their digests are of


# A file


@dataclass(frozen=True, eq=False)
class Shipped:
    """What a file says, once its hash has been found to fit."""

    content: Mapping[str, Any]

    @property
    def experiment(self) -> Experiment:
        return experiment_of(self.content["experiment"])

    @property
    def seeds(self) -> int:
        return int(self.content["seeds"])

    @property
    def mark(self) -> str:
        """Where it comes from: "run on 2026-11-18, commit 0123456789"."""
        commits = self.content["commits"]
        return f"run on {self.content['date']}, {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}"

    @property
    def facts(self) -> str:
        """How it was made."""
        runs, hours = len(self.content["runs"]), self.content["cpu_hours"]
        made = f"{runs:,} runs, {hours:.3g} CPU hours on {', '.join(self.content['processors'])}"
        return f"{made}, spie {', '.join(self.content['spie'])}"

    @property
    def unfinished(self) -> str:
        """Which runs it does not have; empty where it has all."""
        today, runs = self.experiment.runs(self.seeds), len(self.content["runs"])
        missing = [(run.env, label_of(run)) for run in today if run.id not in self.ids]
        if self.stale or not self.experiment.grows:  # today's plan is another than the one that it was made by
            missing = self.content.get("missing", [])
        if not missing:
            return ""
        named = [f"{env} {who}" for env, who in missing]
        if len(named) > NAMED:
            named = [f"{n} of {env}" for env, n in Counter(env for env, _ in missing).items()]
        return f"unfinished: {runs} of {runs + len(missing)} runs; missing: {', '.join(named)}"

    @cached_property
    def parts(self) -> list[Table | Text | CurvePanels]:
        return [decode(part) for part in self.content["section"]]

    @cached_property
    def ids(self) -> set[str]:
        """Of its runs."""
        return {entry["id"] for entry in self.content["runs"]}

    @cached_property
    def stale(self) -> str:
        """Why it says nothing about today's agents; empty where it does."""
        today = self.experiment.runs(self.seeds)
        versions, made = agent_versions(today), self.content["agents"]
        for agent, version in made.items():
            if versions.get(agent, version) != version:
                return f"made by version {version} of {agent}, not run again since"
        planned = {run.id for run in today}
        fits = self.ids <= planned if self.experiment.grows else self.ids >= planned
        return "" if fits else "made with other settings than today's, not run again since"

    def confirm(self, run: Run, result: Result) -> str:
        """What a run that was run again says about the file: SAME, WITHIN, DIFFERS or OTHERWISE."""
        entry = next(entry for entry in self.content["runs"] if entry["id"] == run.id)
        if _same_bits(result, entry):
            return SAME
        again = measured(self.experiment, run, result)
        if again["measure"] != entry["measure"]:
            return OTHERWISE
        if None in (again["low"], again["high"], entry["low"], entry["high"]):
            return WITHIN if again["mean"] == entry["mean"] else DIFFERS
        return WITHIN if again["low"] <= entry["high"] and entry["low"] <= again["high"] else DIFFERS

    def judged(self, judgement: Judgement) -> Judgement:
        """A claim that the user's results do not judge, by the results that ship; else as it was."""
        found = self.content["claims"].get(judgement.claim.id)
        if found is None or found["figure"] == NO_FIGURE or self.stale or found["claim"] != _said(judgement.claim):
            return judgement
        if judgement.verdict != NOT_RUN and judgement.figure != NO_FIGURE:
            return judgement
        reason = f"{found['reason']} (as shipped: {self.mark})"
        return dataclasses.replace(judgement, figure=found["figure"], verdict=found["verdict"], reason=reason)


def _said(claim: Claim) -> list[str]:
    """What a verdict is about, and the rules that it comes from."""
    return [claim.text, claim.measured, f"rules {RULES}"]


def agent_versions(runs: Iterable[Run]) -> dict[str, int]:
    """The agents of some runs and their versions; of a search, those that it tries."""
    found = {}
    for run in runs:
        known = identity(run.settings)
        known = known["settings"].get("base", known)
        found[known["agent"]] = known["version"]
    return found


class DamagedError(ValueError):
    """A file says nothing that could be trusted; it may be made again."""


def path_of(key: str) -> Path:
    return FOLDER / f"{key}{SUFFIX}"


def written(content: Mapping[str, Any]) -> bytes:
    """The bytes of a file, the same whenever it is written."""
    file = {"sha256": json_hash(content), "content": content}
    return gzip.compress(json.dumps(file, sort_keys=True, separators=(",", ":")).encode() + b"\n", mtime=0)


def read(path: Path) -> Shipped:
    """A file of ours; ValueError where it is damaged, of a newer format, or of an experiment that nobody knows."""
    refused = f"{path} is refused: "
    try:
        file = json.loads(gzip.decompress(path.read_bytes()))
        content, claimed = file["content"], file["sha256"]
        format_ = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError, gzip.BadGzipFile, EOFError, zlib.error):
        again = "it is no results file; install spie again, or make it again with --ship"
        raise DamagedError(refused + again) from None
    if json_hash(content) != claimed:
        again = "its content does not fit its hash; install spie again, or make it again with --ship"
        raise DamagedError(refused + again)
    if format_ > FORMAT:
        raise ValueError(f"{refused}it has format {format_}, this spie reads up to {FORMAT}; update spie")
    try:
        experiment_of(content["experiment"])
    except ValueError as error:
        raise ValueError(f"{refused}{error}") from None
    return Shipped(content)


def find(key: str) -> Shipped | None:
    """What ships of an experiment; None where nothing does."""
    return read(path_of(key)) if path_of(key).exists() else None


def available() -> tuple[dict[str, Shipped], list[str]]:
    """All that ships, by the key of the experiment, and a line for each file that is refused."""
    found, problems = {}, []
    for path in sorted(FOLDER.glob(f"*{SUFFIX}")):
        try:
            shipped = read(path)
            found[shipped.experiment.key] = shipped
        except ValueError as error:
            problems.append(str(error))
    return found, problems


# Making one


def ship(experiment: Experiment, results: Results) -> Path:
    """Write the file of an experiment, which is finished in the results unless it grows; returns where it is."""
    if experiment.ships is None:
        raise ValueError(f"{experiment.name} does not say what it ships; give its Experiment ships=section or the like")
    stored = len(results.runs(experiment.key)) - results.missing(experiment.key)
    if not (stored if experiment.grows else results.finished(experiment.key)):
        raise ValueError(f"{experiment.key} is not finished; run it first, without --ship")
    content = summary(experiment, results, experiment.ships(experiment, results))
    data = written(content)
    path = path_of(experiment.key)
    others = sum(other.stat().st_size for other in FOLDER.glob(f"*{SUFFIX}") if other != path)
    if others + len(data) > MOST_BYTES:
        most = f"{MOST_BYTES:,} bytes, and the other files have {others:,}"
        raise ValueError(f"{path.name} would have {len(data):,} bytes; all files may have {most}: ship less")
    FOLDER.mkdir(exist_ok=True)
    write_whole(path, data)
    return path


def summary(experiment: Experiment, results: Results, parts: Sequence[SectionPart]) -> dict[str, Any]:
    """What the file of an experiment says."""
    planned = results.runs(experiment.key)
    runs = [run for run in planned if run.id in results.store]
    infos = [results.store.info(run.id) for run in runs]
    versions = [info["versions"] for info in infos]
    # Where processors were not measured, the time that passed is the least that they took.
    seconds = sum(info["cpu_seconds"] or info["seconds"] for info in infos)
    judgements = judge(results, experiment.claims, all_claims())
    elsewhere = {run_id for key, file in available()[0].items() if key != experiment.key for run_id in _left(file)}
    entries = [_entry(experiment, run, load(results.store, run)) for run in runs]
    return {
        "format": FORMAT,
        "experiment": experiment.key,
        "title": experiment.title,
        "seeds": results.seeds[experiment.key],
        "date": max(info["stored"] for info in infos)[:10],
        "spie": sorted({one["spie-rl"] for one in versions}),
        "commits": sorted({one.get("commit", "unknown") for one in versions}),
        "processors": sorted({one.get("processor", "unknown") for one in versions}),
        "packages": [dict(one) for one in sorted({tuple(sorted(one.items())) for one in versions})],
        "agents": agent_versions(runs),
        "cpu_hours": round(seconds / 3600, 4),
        "runs": [e | _kept(experiment, run, results, elsewhere) for e, run in zip(entries, runs, strict=True)],
        "missing": [[run.env, label_of(run)] for run in planned if run.id not in results.store],
        "claims": {
            j.claim.id: {"figure": j.figure, "verdict": j.verdict, "reason": j.reason, "claim": _said(j.claim)}
            for j in judgements
        },
        "section": [encode(part) for part in parts],
    }


def _entry(experiment: Experiment, run: Run, result: Result) -> dict[str, Any]:
    """A run: what it was, a digest of its bits, and what was measured."""
    names = {"env": run.env, "agent": run.agent, "variant": dict(run.variant), "role": run.role}
    known = {name: value for name, value in run.spec.items() if name not in ("agent", "seeds", "format")}
    seeds = run.seeds if isinstance(run.seeds, int) else _range(run.seeds)
    what = {"id": run.id, "spec": known | {"seeds": seeds}, "digest": digest(result), "of": list(_numbers(result))}
    return what | names | measured(experiment, run, result)


def _kept(experiment: Experiment, run: Run, results: Results, elsewhere: set[str]) -> dict[str, Any]:
    """Where the file grows, all that a run left and how it was made: another machine can take it from there."""
    if not (experiment.grows and experiment.keeps) or run.id in elsewhere:
        return {}
    info = results.store.info(run.id)
    made = {name: info[name] for name in ("versions", "seconds", "cpu_seconds", "stored")}
    return {"made": made, "left": pack(load(results.store, run))}


def _left(file: Shipped) -> dict[str, Mapping[str, Any]]:
    """The runs of a file, by id, that can be taken from it."""
    return {entry["id"]: entry for entry in file.content["runs"] if "left" in entry}


def take_up(experiment: Experiment, seeds: int, store: Store) -> dict[Path, int]:
    """Put into the store the runs of today's plan that files have and the store has not; how many of which file.

    So the next `ship` adds to them. A run of today's plan is one of today's agents. A file that is damaged has none.
    """
    if not experiment.grows:
        return {}
    own, planned = None, {run.id: run for run in experiment.runs(seeds)}
    with contextlib.suppress(DamagedError):
        own = find(experiment.key)
    if own is not None and not own.stale and not own.ids <= planned.keys():
        cure = f"run with --seeds {own.seeds} to add to it, or remove it first"
        raise ValueError(f"{path_of(experiment.key)} has runs of {own.seeds} seeds, which {seeds} leave out; {cure}")
    taken: Counter[Path] = Counter()
    for key, file in available()[0].items():
        for run_id, entry in _left(file).items():
            if run_id not in planned or run_id in store:
                continue
            run, result, made = planned[run_id], unpack(entry["left"]), entry["made"]
            if digest(result) != entry["digest"]:
                raise ValueError(f"{path_of(key)}: what {run.env} {run.agent} left is not what its digest says")
            save(store, run, result, made["seconds"], made["cpu_seconds"], made["versions"], made["stored"])
            taken[path_of(key)] += 1
    lacking = set() if own is None or own.stale or experiment.keeps else {i for i in own.ids if i not in store}
    if lacking:
        cure = "ship from the results that have them, or run them here first, without --ship"
        raise ValueError(f"{path_of(experiment.key)} has {len(lacking)} runs that these results lack; {cure}")
    return dict(taken)


def _range(seeds: Sequence[int]) -> Any:
    """Seeds in a row as the first and how many."""
    row = [int(seed) for seed in seeds]
    return {"first": row[0], "n": len(row)} if row == list(range(row[0], row[0] + len(row))) else row


def _numbers(result: Result) -> dict[str, NDArray[Any]]:
    """Every array of numbers of a result by name, in the order of the names."""
    return dict(sorted((name, a) for name, a in arrays_of(result).items() if a.dtype.kind != "U"))


def digest(result: Result, of: Iterable[str] | None = None) -> str:
    """Of every number of a result: the same bits have the same digest, and nothing else has. of: of these arrays."""
    arrays = _numbers(result)
    if of is not None:
        arrays = {name: arrays[name] for name in sorted(of)}
    layout = (repr((name, a.dtype.str, a.shape)) for name, a in arrays.items())
    return content_hash(layout, b"".join(a.tobytes() for a in arrays.values())).hex()[:32]


def _same_bits(result: Result, entry: Mapping[str, Any]) -> bool:
    """Whether a result has the bits that the file says; arrays that traces have been given since say nothing."""
    names = _numbers(result).keys()
    readings = [entry["of"]] if "of" in entry else [names, names - set(LATER)]
    return any(names >= set(of) and digest(result, of) == entry["digest"] for of in readings)


def measured(experiment: Experiment, run: Run, result: Result) -> dict[str, Any]:
    """The measure of a run and its 95 % interval; of a search, the mean over all of its settings."""
    if isinstance(result, Scores):
        what, values = "score of the search", result.values.mean(axis=0)
    else:
        what, values = experiment.measure(run, result)
    found = stats.estimate(values)
    names = ("n", "mean", "sd", "low", "high")
    return {"measure": what} | {name: plain(vars(found)[name]) for name in names}


# Checking one


def recorded_runs(shipped: Shipped) -> dict[str, Run]:
    """The runs of a file that can be had without its results, by id.

    What follows from a search is planned as if all settings had done alike; the settings that the file has for such a
    run are put in, and it is the same run if it has the same id.
    """
    experiment, recorded = shipped.experiment, {entry["id"]: entry for entry in shipped.content["runs"]}
    planned = experiment.runs(shipped.seeds)
    for follow in experiment.then:
        planned += follow(shipped.seeds, _all_alike)
    found = {run.id: run for run in planned if run.id in recorded}
    places = {(run.env, run.agent, *sorted(run.variant.items())): run for run in planned if run.role != "search"}
    for run_id, entry in recorded.items():
        place = places.get((entry["env"], entry["agent"], *sorted(entry["variant"].items())))
        if run_id not in found and entry["role"] != "search" and place is not None:
            run = dataclasses.replace(place, settings=type(place.settings)(**entry["spec"]["settings"]))
            if run.id == run_id:
                found[run_id] = run
    return found


def _all_alike(run: Run) -> Scores:
    seeds = np.arange(run.seeds) if isinstance(run.seeds, int) else np.array(run.seeds)
    return Scores(seeds, np.zeros((run.settings.n_settings, len(seeds))))
