"""Films: one function writes them all, GIF by Pillow and MP4 by ffmpeg; and agents in a maze, frame by frame."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from spie.files import replacing, replacing_path, to_disk
from spie.page.plots.states import StateMap, colour_bar, colours_of, extent, frame_axes, log_scale, places_of
from spie.page.plots.style import GOAL, ON_MAP, STYLE, new_figure, settled
from spie.tasks.mdp import MDP

TAIL = 40  # steps of the path behind an agent
AGENT = "#b3261e"
COLUMNS = ("entries", "bonus at the last entry", "representation from where it is")


def check_film(path: str | Path) -> None:
    """Refuse a film that cannot be written, before any work is done for it."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise ValueError(f"{path}: a film is a .gif or an .mp4; choose such a name with -o")
    if not Path(path).absolute().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {Path(path).parent}; make it, or choose another name with -o")
    if suffix == ".mp4":
        _ffmpeg()


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError:
        raise ImportError(
            'films as .mp4 need imageio-ffmpeg: pip install "spie-rl[film]"; .gif needs nothing'
        ) from None
    return imageio_ffmpeg


def write_film(frames: Iterable[NDArray[np.uint8]], path: str | Path, fps: int = 12) -> int:
    """Write frames uint8 [H, W, 3], as they come, to a .gif or an .mp4, whole or not at all; returns how many."""
    check_film(path)
    path, count = Path(path), 0

    def counted() -> Iterator[NDArray[np.uint8]]:
        nonlocal count
        for frame in frames:
            count += 1
            yield frame

    if path.suffix.lower() == ".mp4":
        _write_mp4(counted(), path, fps)
    else:
        _write_gif(counted(), path, fps)
    return count


def _write_gif(frames: Iterator[NDArray[np.uint8]], path: Path, fps: int) -> None:
    from PIL import Image

    pictures = (Image.fromarray(frame).quantize(128, dither=Image.Dither.NONE) for frame in frames)
    first = next(pictures)
    with replacing(path) as file:
        first.save(file, "GIF", save_all=True, append_images=pictures, duration=round(1000 / fps), loop=0)


def _write_mp4(frames: Iterator[NDArray[np.uint8]], path: Path, fps: int) -> None:
    first = next(frames)
    height, width = (side - side % 2 for side in first.shape[:2])  # the codec wants even sides
    with replacing_path(path, path.suffix) as unfinished:
        writer = _ffmpeg().write_frames(
            str(unfinished), (width, height), fps=fps, macro_block_size=2, ffmpeg_log_level="error"
        )
        writer.send(None)
        writer.send(np.ascontiguousarray(first[:height, :width]))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame[:height, :width]))
        writer.close()
        with unfinished.open("rb") as file:
            to_disk(file)


def figure_frame(figure: Figure) -> NDArray[np.uint8]:
    """A figure as it is now, uint8 [H, W, 3]."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


class Redrawn:
    """A figure of which some things change from frame to frame; all else is drawn once."""

    def __init__(self, figure: Figure, changing: Sequence[Any]) -> None:
        canvas: Any = FigureCanvasAgg(settled(figure))
        self.canvas = canvas
        self.figure, self.changing = figure, changing
        for artist in changing:
            artist.set_animated(True)
        canvas.draw()
        self.background = canvas.copy_from_bbox(figure.bbox)

    def frame(self) -> NDArray[np.uint8]:
        """The figure as it is now, uint8 [H, W, 3]."""
        self.canvas.restore_region(self.background)
        for artist in self.changing:
            artist.axes.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())[:, :, :3].copy()


@dataclass(frozen=True)
class FilmedRun:
    """What a film shows of one agent."""

    name: str
    states: NDArray[Any]  # [steps + 1] the first, then where each step led
    bonuses: NDArray[Any]  # [steps] intrinsic, before beta
    matrix: str  # M, F or N: the representation that it learns or is given; empty for none
    rows: Sequence[NDArray[Any]]  # at each frame, the row of the agent's state in it [S]; none without
    goals: Sequence[NDArray[np.bool_]]  # at each frame, the states that end an episode [S]
    episodes: Sequence[int]  # at each frame, how many have ended


@matplotlib.rc_context(STYLE)
def maze_frames(mdp: MDP, runs: Sequence[FilmedRun], times: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
    """Agents below each other, each with its visits, its bonus and its representation; one colour scale a column."""
    film = _MazeFilm(mdp, runs, times)
    for i in range(len(times)):
        film.show(i)
        yield figure_frame(film.figure)


class _MazeFilm:
    def __init__(self, mdp: MDP, runs: Sequence[FilmedRun], times: Sequence[int]) -> None:
        self.mdp, self.runs, self.times, self.places = mdp, runs, times, places_of(mdp)
        self.counts = [_visits(mdp, run.states, times) for run in runs]
        self.paid = [_last_bonuses(mdp, run, times) for run in runs]
        bonuses = np.concatenate([paid[np.isfinite(paid)] for paid in self.paid] or [np.zeros(1)])
        low, high = (float(bonuses.min()), float(bonuses.max())) if bonuses.size else (0.0, 1.0)
        rows = [row for run in runs for row in run.rows]
        self.norms: list[Normalize] = [
            log_scale(np.concatenate(self.counts).astype(np.float64)),
            Normalize(low, high if high > low else low + 1),
            log_scale(np.concatenate(rows)) if rows else Normalize(),
        ]
        width, height = extent(mdp)
        across = 2.1
        down = min(max(across * height / width, 0.5), 4.0) + 0.25
        self.figure = new_figure(3 * across + 0.9, down * len(runs) + 0.85)
        self.figure.set_dpi(90)
        self.title = self.figure.suptitle("step", fontsize=9.5, x=0.01, ha="left")
        axes = self.figure.subplots(len(runs), 3, squeeze=False)
        self.maps = [[StateMap(ax, mdp) for ax in row] for row in axes]
        for ax in axes.ravel():
            frame_axes(ax, mdp)
        for row, run in zip(axes, runs, strict=True):
            row[0].set_ylabel(run.name + ("\nepisode 1" if run.episodes[-1] else ""), fontsize=9)
            row[2].set_xlabel(f"{run.matrix}[s, :]", fontsize=8.5)
            if not run.matrix:
                row[2].clear()
                row[2].set_axis_off()
                row[2].text(0.5, 0.5, "no representation", transform=row[2].transAxes, ha="center", fontsize=8.5)
        for ax, column in zip(axes[0], COLUMNS, strict=True):
            ax.set_title(column, loc="left", fontsize=8.5)
        labels = ("entries of a state", "bonus, before beta", "discounted visits; of F, first ones")
        for j, (norm, label) in enumerate(zip(self.norms, labels, strict=True)):
            if j < 2 or rows:
                colour_bar(self.figure, list(axes[:, j]), norm, label, aspect=18, shrink=0.85)
        self.tails = [row[0].plot([], [], color=AGENT, linewidth=0.9, alpha=0.8, zorder=5)[0] for row in axes]
        self.dots = [[self._dot(ax, "o", AGENT, 5) for ax in row] for row in axes]
        self.stars = [self._dot(row[0], "*", GOAL, 10) for row in axes]
        settled(self.figure)

    @staticmethod
    def _dot(ax: Axes, marker: str, colour: str, size: float) -> Any:
        return ax.plot([], [], marker, color=colour, markersize=size, markeredgecolor=ON_MAP, zorder=6)[0]

    def show(self, i: int) -> None:
        """Draw frame i."""
        t = self.times[i]
        self.title.set_text(f"{self.mdp.name}, step {t:,}")
        for k, run in enumerate(self.runs):
            values = [self.counts[k][i], self.paid[k][i], *run.rows[i : i + 1]]
            for states, numbers, norm in zip(self.maps[k], values, self.norms, strict=False):
                states.fill(colours_of(numbers, norm))
            x, y = self.places[run.states[t]]
            for dot in self.dots[k][: len(values)]:
                dot.set_data([x], [y])
            tail = self.places[run.states[max(0, t - TAIL) : t + 1]]
            jumps = np.linalg.norm(np.diff(tail, axis=0), axis=1) > 1.5 * max(1.0, self._longest)
            tail = tail.copy()
            tail[1:][jumps] = np.nan  # a new episode
            self.tails[k].set_data(*tail.T)
            self.stars[k].set_data(*self.places[run.goals[i]].T)
            if run.episodes[-1]:
                self.maps[k][0].ax.set_ylabel(f"{run.name}\nepisode {run.episodes[i] + 1}", fontsize=9)

    @property
    def _longest(self) -> float:
        layout = self.mdp.layout
        pairs = np.concatenate([layout.links, layout.arrows])
        if self.mdp.cells is not None or not len(pairs):
            return 1.0
        return float(np.linalg.norm(layout.positions[pairs[:, 0]] - layout.positions[pairs[:, 1]], axis=1).max())


def _visits(mdp: MDP, states: NDArray[Any], times: Sequence[int]) -> NDArray[np.int64]:
    """Entries of every state up to each time [times, S]; the first state counts."""
    return np.array([np.bincount(states[: t + 1], minlength=mdp.n_states) for t in times])


def _last_bonuses(mdp: MDP, run: FilmedRun, times: Sequence[int]) -> NDArray[np.float64]:
    """What was paid when each state was last entered, up to each time [times, S]; not a number before."""
    found = np.full((len(times), mdp.n_states), np.nan)
    for i, t in enumerate(times):
        last = np.full(mdp.n_states, np.nan)
        last[run.states[1 : t + 1]] = run.bonuses[:t]  # the last of equal indices stays
        found[i] = last
    return found


def phases(mdp: MDP, next_states: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Phase and episodes that have ended, before each step and after the last [steps + 1]."""
    terminal, per = mdp.terminal.tolist(), mdp.episodes_per_phase
    phase, ended, found = 0, 0, [(0, 0)]
    for s in next_states.tolist():
        if terminal[phase][s]:
            ended += 1
            phase = ended // per % mdp.n_phases if per else 0
        found.append((phase, ended))
    both = np.array(found)
    return both[:, 0], both[:, 1]
