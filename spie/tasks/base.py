"""What can be explored: the contract of a task, and the three kinds that there are."""

from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

Kind = Literal["table", "continuous", "images"]


@runtime_checkable
class Task(Protocol):
    """Something to explore. Each kind adds what its agents build their environments from.

    table        `spie.MDP`: successors, probabilities and rewards as arrays
    continuous   `spie.ContinuousTask`: bounds, and a step function in plain Python
    images       `ImageTask`: copies of an environment that shows grey images

    >>> spie.riverswim().kind, spie.mountain_car().kind
    ('table', 'continuous')
    """

    kind: ClassVar[Kind]

    @property
    def name(self) -> str:
        """For people."""

    @property
    def digest(self) -> str:
        """A hash of all that determines the task; a run's id is made of it."""


class ImageTask(Task, Protocol):
    """A task for agents that see images; see `spie.tasks.pixels`, `spie.tasks.atari` and `spie.tasks.gymnasium`.

    Inherit from it: `shape` and `recipe` have defaults.
    """

    kind: ClassVar[Kind] = "images"

    @property
    def frame_skip(self) -> int:
        """Frames of the emulator that one step of the agent takes; 1 where there is no emulator."""

    def make(self, n: int) -> Any:
        """n copies as one Gymnasium VectorEnv of single grey frames uint8 [n, H, W] that does not reset itself."""

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of a frame."""
        env = self.make(1)
        height, width = env.single_observation_space.shape
        env.close()
        return height, width

    @property
    def planes(self) -> int:
        """How many planes a frame is made of, one below the other, which networks read as channels; mostly 1."""
        return 1

    @property
    def recipe(self) -> tuple[str, dict[str, Any]] | None:
        """Name and options by which `spie.task` makes it again, as a run does that goes on; None: it cannot."""
        return None


def check_kind(task: Task, kind: Kind, agent: str) -> None:
    """Refuse a task that an agent cannot run on."""
    if task.kind != kind:
        what = {"table": "a finite MDP", "continuous": "a ContinuousTask", "images": "a task that shows images"}
        raise ValueError(f"{agent} needs {what[kind]}; {task.name} is {what[task.kind]}")
