"""An episode of a deep agent as a film."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from spie.page.plots.frames import Redrawn, write_film
from spie.page.plots.style import COLOURS, STYLE, new_figure


@matplotlib.rc_context(STYLE)
def film(
    frames: Sequence[NDArray[Any]],
    Q: Sequence[NDArray[Any]],
    actions: Sequence[int],
    bonuses: Sequence[float],
    predicted: Sequence[NDArray[Any] | None],
    path: str | Path,
    told: Callable[[int], None] = lambda t: None,
) -> int:
    """An episode as a GIF or MP4: frame, the frame that was expected after it, Q of every action, bonus so far.

    told: called with each step that is drawn. Returns how many frames there are.
    """
    figure = new_figure(8.4, 2.6)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.2])
    grey = {"cmap": "gray", "vmin": 0, "vmax": 255}
    images = [ax.imshow(frames[0], **grey) for ax in axes[:2]]
    for ax, title in zip(axes, ("frame", "expected next frame", "Q", "bonus"), strict=True):
        ax.set_title(title)
    for ax in axes[:2]:
        ax.set_axis_off()
    low, high = min(map(np.min, Q)), max(map(np.max, Q))
    bars = axes[2].bar(range(len(Q[0])), Q[0], color=COLOURS["sarsa-sr"])
    axes[2].set_ylim(min(low, 0), max(high, 1e-9))
    (line,) = axes[3].plot(bonuses, color=COLOURS["sarsa-srr"])
    redrawn = Redrawn(figure, [*images, *bars, line])

    def draw_step(t: int) -> NDArray[np.uint8]:
        images[0].set_data(frames[t])
        expected = predicted[t - 1] if t else None
        images[1].set_data(np.zeros_like(frames[t]) if expected is None else expected)
        for a, bar in enumerate(bars):
            bar.set_height(Q[t][a])
            bar.set_color(COLOURS["sarsa-srr" if a == actions[t] else "sarsa-sr"])
        line.set_data(range(t + 1), bonuses[: t + 1])
        told(t)
        return redrawn.frame()

    steps: Iterator[NDArray[np.uint8]] = map(draw_step, range(len(frames)))
    return write_film(steps, path, fps=15)
