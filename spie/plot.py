"""Pictures of mazes and of what is known about their states: `spie.plot.values(maze, M[:, s])`.

Every function takes `ax=`, Matplotlib axes to draw on, and returns them; without, it makes a figure of its own, which
`save` writes to a file (PNG, SVG or PDF).

    fig, axes = plt.subplots(1, 2)
    spie.plot.maze(maze, ax=axes[0])
    spie.plot.values(maze, maze.representations(gamma=0.95).fiedler, diverging=True, ax=axes[1])
"""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spie.page.plots import plot_maze, plot_path, plot_values
from spie.page.plots import save as _save

__all__ = ["maze", "path", "save", "values"]

maze, values, path = plot_maze, plot_values, plot_path


def save(drawn: Axes | Figure, path: str | Path) -> None:
    """Write the figure of some axes, or a figure, to a file: .png, .svg or .pdf.

    drawn: axes or a figure. path: whose ending says which. Raises ValueError for other endings.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spie.plot.save(spie.plot.maze(spie.grid("S..")), pathlib.Path(folder) / "maze.svg")
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['maze.svg']
    """
    _save(drawn if isinstance(drawn, Figure) else drawn.figure.get_figure(root=True), path)
