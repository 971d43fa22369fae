"""Replay memory: every frame once, stacks gathered when sampled, Monte-Carlo returns filled in when an episode ends.

The memory is a log of *slots*, numbered from 0 on and for ever; the last `capacity` of them are alive. A slot holds one
frame and what was done after seeing it. The last frame of an episode has a slot too, with nothing done. Environments
take turns in one log, so a slot says how far back its own episode's previous slot lies, 0 for the first. The walk back
gives the stack, and where the episode has no more frames it repeats the first.

Frames never change once written, so they are kept in append-only segments, in memory or as memory-mapped files. A
checkpoint saves the small fields whole, and of the frames only what was added since the last one.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.files import to_disk

SEGMENT = 32_768  # slots in a segment; 231 MB of Atari frames
SLOT = np.dtype(
    [
        ("reward", np.float32),  # extrinsic, as the environment paid it
        ("bonus", np.float32),  # intrinsic, raw, when it was collected
        ("total", np.float32),  # what the agent was paid then: both, scaled and clipped
        ("value", np.float32),  # Monte-Carlo return from here; NaN until the episode ends
        ("state", np.int32),  # true state after the step, where it is known
        ("action", np.int16),
        ("terminal", np.bool_),  # the step ended the episode (a time limit is no end: what follows still counts)
        ("previous", np.uint16),  # that many slots back: the same episode one step earlier; 0: none
        ("next", np.uint16),  # that many slots on: the same episode one step later; 0: none yet, or never
    ]
)
TINY = 1e-12  # the square of a bonus that is 0
_EMPTY = np.zeros((), SLOT)
_EMPTY["value"] = np.nan


@dataclass
class SampledBatch:
    """SampledBatch [B] of one lane."""

    frames: NDArray[np.uint8]  # [B, stack + 1, H, W]: s is all but the last, s' all but the first
    action: NDArray[np.int64]
    reward: NDArray[np.float32]
    bonus: NDArray[np.float32]
    total: NDArray[np.float32]
    value: NDArray[np.float32]
    state: NDArray[np.int64]
    discount: NDArray[np.float32]  # 0 where s' ended the episode, else 1
    slots: NDArray[np.int64]  # where they begin


@dataclass
class FollowingSteps:
    """Up to n steps from each of B transitions on, of one lane: fewer where the episode ends or has no more yet."""

    slots: NDArray[np.int64]  # [B, n] where each step begins
    counts: NDArray[np.bool_]  # [B, n] whether there is such a step
    after: NDArray[np.uint8]  # [B, stack, H, W] the state after the last of them
    ended: NDArray[np.bool_]  # [B] whether that step ended the episode


@dataclass
class _Episode:
    """An episode under way: its slots, and what was paid in them."""

    slots: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class FrameReplay:
    """The log of `envs` environments of one agent."""

    def __init__(
        self,
        capacity: int,
        shape: tuple[int, int],
        *,
        envs: int = 1,
        stack: int = 1,
        gamma: float = 0.99,
        folder: Path | None = None,
        segment: int = SEGMENT,
    ) -> None:
        """folder: where the frames lie as memory-mapped files; None keeps them in memory."""
        if capacity < 2 * (stack + 1) * envs:
            raise ValueError(f"a replay of {capacity} steps is too small for {envs} envs; give replay={100 * envs}")
        self.capacity, self.shape, self.stack, self.gamma = capacity, shape, stack, gamma
        self.folder, self.segment = folder, segment
        self.head = 0  # slots written
        self.finished = 0  # transitions alive whose episode has ended
        self.transitions = 0  # transitions alive
        self._slots = np.zeros(capacity, SLOT)
        self._segments: dict[int, NDArray[np.uint8]] = {}
        self._episodes = [_Episode() for _ in range(envs)]
        self._last: list[int | None] = [None] * envs  # slot of each environment's frame before this one
        self._saved = 0  # frames on disk
        self._hashes: dict[int, Any] = {}  # running hash of each segment, up to _saved

    @staticmethod
    def bytes_for(capacity: int, shape: tuple[int, int], segment: int = SEGMENT) -> int:
        """Memory at most in use with `capacity` slots."""
        frames = capacity + min(segment, capacity)  # the oldest segment stays until its last slot is dead
        return frames * shape[0] * shape[1] + capacity * SLOT.itemsize

    @property
    def oldest(self) -> int:
        return max(0, self.head - self.capacity)

    def newest(self, env: int) -> int:
        """The slot of an environment's last frame, from which a step has led on; -1 where its episode has ended."""
        slot = self._last[env]
        return -1 if slot is None else slot

    # -- writing

    def _write(self, env: int, frame: NDArray[np.uint8]) -> int:
        slot, last = self.head, self._last[env]
        at = self._slots[slot % self.capacity]
        if slot >= self.capacity and at["next"]:
            self.transitions -= 1
            self.finished -= not np.isnan(at["value"])
        self._slots[slot % self.capacity] = _EMPTY
        index, offset = divmod(slot, self.segment)
        if offset == 0:
            self._open(index)
        self._segments[index][offset] = frame
        self.head += 1
        if last is not None and last >= self.oldest:
            at["previous"] = slot - last
            self._slots[last % self.capacity]["next"] = slot - last
            self.transitions += 1
        self._last[env] = slot
        return slot

    def add(
        self,
        env: int,
        frame: NDArray[np.uint8],
        action: int,
        reward: float,
        total: float,
        *,
        bonus: float = 0.0,
        terminal: bool = False,
        state: int = -1,
    ) -> None:
        """`action` was taken after seeing `frame`, and paid `reward`, which with the bonus makes `total`."""
        slot = self._write(env, frame)
        at = self._slots[slot % self.capacity]
        at["action"], at["reward"], at["bonus"], at["total"] = action, reward, bonus, total
        at["terminal"], at["state"] = terminal, state
        self._episodes[env].slots.append(slot)
        self._episodes[env].rewards.append(total)

    def end(self, env: int, last_frame: NDArray[np.uint8], value: float = 0.0) -> None:
        """An episode is over: its last frame, and what would have come after it (0 unless it was truncated)."""
        self._write(env, last_frame)
        self._last[env] = None
        episode = self._episodes[env]
        returns = monte_carlo(episode.rewards, self.gamma, value)
        slots = np.array(episode.slots)
        alive = slots >= self.oldest
        self._slots["value"][slots[alive] % self.capacity] = returns[alive]
        self.finished += int(alive.sum())
        self._episodes[env] = _Episode()

    def _open(self, index: int) -> None:
        shape = (self.segment, *self.shape)
        if self.folder is None:
            self._segments[index] = np.empty(shape, np.uint8)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / segment_name(index)
            with open(path, "wb") as file:
                _reserve(file.fileno(), int(np.prod(shape)))
            self._segments[index] = np.memmap(path, np.uint8, "r+", shape=shape)
        for old in [i for i in self._segments if (i + 1) * self.segment <= self.oldest]:
            del self._segments[old]  # a file stays as long as a checkpoint names it

    # -- reading

    def gather(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The frames of any slots [...] as [..., H, W]."""
        frames = np.empty((slots.size, *self.shape), np.uint8)
        index, offset = np.divmod(slots.ravel(), self.segment)
        for i in np.unique(index) if len(self._segments) > 1 else index[:1]:
            here = index == i
            frames[here] = self._segments[i][offset[here]]
        return frames.reshape(*slots.shape, *self.shape)

    def _history(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of each stack [B, stack], oldest first; where the episode began later, its first one again."""
        chain = np.empty((len(slots), self.stack), np.int64)
        for i in reversed(range(self.stack)):
            chain[:, i] = slots
            slots = slots - self._slots["previous"][slots % self.capacity]
        return chain

    def ready(self, *, finished: bool = False) -> bool:
        """Whether there is anything to sample: the oldest transitions may have lost part of their stack."""
        n = self.finished if finished else self.transitions
        if n > (self.stack - 1) * len(self._episodes):
            return True
        return n > 0 and bool(self._usable(np.arange(self.oldest, self.head), finished).any())

    def sample(self, batch: int, rng: np.random.Generator, *, finished: bool = False, draws: int = 1) -> SampledBatch:
        """SampledBatch at random; `finished`: only of episodes that have ended, whose return is therefore known.

        draws: how many are drawn for each; one of them is kept, with a chance proportional to the square of its bonus.
        """
        slots = self._drawn(batch * draws, rng, finished)
        if draws > 1:
            weights = np.square(self._slots["bonus"][slots % self.capacity], dtype=np.float64).reshape(batch, draws)
            up_to = np.cumsum(weights + TINY, axis=1)
            kept = (up_to <= rng.random((batch, 1)) * up_to[:, -1:]).sum(axis=1)
            slots = slots.reshape(batch, draws)[np.arange(batch), np.minimum(kept, draws - 1)]
        return self.transitions_at(slots)

    def set_bonus(self, slots: NDArray[np.int64], bonus: NDArray[Any]) -> None:
        """The raw bonus of transitions as it is now, by which they are drawn."""
        self._slots["bonus"][slots % self.capacity] = bonus

    def _drawn(self, batch: int, rng: np.random.Generator, finished: bool) -> NDArray[np.int64]:
        """Slots where transitions begin, at random."""
        slots = np.empty(0, np.int64)
        for _ in range(20):
            drawn = rng.integers(self.oldest, self.head, 2 * batch)
            slots = np.concatenate([slots, drawn[self._usable(drawn, finished)]])
            if len(slots) >= batch:
                break
        else:  # hardly any are usable: look at all of them
            usable = np.arange(self.oldest, self.head)
            usable = usable[self._usable(usable, finished)]
            if len(usable) == 0:
                raise ValueError("the replay has no transition to sample yet")
            slots = rng.choice(usable, batch)
        return slots[:batch]

    def _usable(self, slots: NDArray[np.int64], finished: bool) -> NDArray[np.bool_]:
        at = slots % self.capacity
        usable: NDArray[np.bool_] = self._slots["next"][at] > 0
        if finished:
            usable &= ~np.isnan(self._slots["value"][at])
        if self.stack > 1 and self.oldest > 0:  # the oldest ones have lost part of their stack
            usable &= self._history(slots)[:, 0] >= self.oldest
        return usable

    def transitions_at(self, slots: NDArray[np.int64]) -> SampledBatch:
        """The transitions that begin in these slots."""
        rows = self._slots[slots % self.capacity]
        chain = np.concatenate([self._history(slots), (slots + rows["next"])[:, None]], axis=1)
        return SampledBatch(
            self.gather(chain),
            rows["action"].astype(np.int64),
            rows["reward"],
            rows["bonus"],
            rows["total"],
            rows["value"],
            rows["state"].astype(np.int64),
            1 - rows["terminal"].astype(np.float32),
            slots,
        )

    def following(self, slots: NDArray[np.int64], n: int) -> FollowingSteps:
        """What was done from these slots [B] on."""
        chain, counts = np.empty((len(slots), n), np.int64), np.ones((len(slots), n), np.bool_)
        under_way = np.ones(len(slots), np.bool_)
        for k in range(n):
            rows = self._slots[slots % self.capacity]
            counts[:, k] = under_way & (rows["next"] > 0)
            chain[:, k], under_way = slots, counts[:, k] & ~rows["terminal"]
            slots = np.where(counts[:, k], slots + rows["next"], slots)
        last = chain[np.arange(len(chain)), counts.sum(axis=1) - 1]
        over = self._slots["terminal"][last % self.capacity]
        return FollowingSteps(chain, counts, self.gather(self._history(slots)), over)

    def entered(self, slots: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The frames [..., H, W] that the steps which begin in some slots led to."""
        return self.gather(slots + self._slots["next"][slots % self.capacity])

    def field(self, name: str, slots: NDArray[np.int64]) -> NDArray[Any]:
        """A field of any slots."""
        return np.asarray(self._slots[name][slots % self.capacity])

    # -- checkpoints

    def save_frames(self, folder: Path) -> list[dict[str, Any]]:
        """Bring the segment files in `folder` up to date; what a checkpoint has to name: file, slots, hash."""
        folder.mkdir(parents=True, exist_ok=True)
        first = max(self._saved, self.oldest // self.segment * self.segment)
        size = int(np.prod(self.shape))
        for index in range(first // self.segment, -(-self.head // self.segment)):
            begin = max(first - index * self.segment, 0)
            end = min(self.head - index * self.segment, self.segment)
            frames = self._segments[index]
            if isinstance(frames, np.memmap):
                frames.flush()
            else:
                path = folder / segment_name(index)
                with open(path, "r+b" if path.exists() else "w+b") as file:
                    file.truncate(begin * size)  # what a run that was killed had added
                    file.seek(begin * size)
                    file.write(frames[begin:end].data)
                    to_disk(file)
            digest = self._hashes.setdefault(index, hashlib.sha256())
            digest.update(frames[begin:end].data)
        self._saved = self.head
        alive = range(self.oldest // self.segment, -(-self.head // self.segment))
        self._hashes = {index: self._hashes[index] for index in alive}
        return [
            {
                "file": segment_name(index),
                "slots": min(self.head - index * self.segment, self.segment),
                "sha256": self._hashes[index].copy().hexdigest(),
            }
            for index in alive
        ]

    def fields(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All but the frames: arrays, and plain values."""
        alive = np.arange(self.oldest, self.head) % self.capacity
        values = {
            "capacity": self.capacity,
            "segment": self.segment,
            "head": self.head,
            "finished": self.finished,
            "transitions": self.transitions,
            "last": list(self._last),
        }
        arrays: dict[str, NDArray[Any]] = {"slots": self._slots[alive]}
        for env, episode in enumerate(self._episodes):
            arrays[f"episode{env}/slots"] = np.array(episode.slots, np.int64)
            arrays[f"episode{env}/rewards"] = np.array(episode.rewards, np.float64)
        return arrays, values

    def restore(
        self,
        arrays: Mapping[str, NDArray[Any]],
        values: Mapping[str, Any],
        folder: Path,
        segments: Sequence[Mapping[str, Any]],
    ) -> None:
        """Back to a checkpoint: what `fields` and `save_frames` gave. Raises ValueError where a segment is damaged."""
        if (values["capacity"], values["segment"]) != (self.capacity, self.segment):
            raise ValueError(f"the replay saved has another size ({values['capacity']}, not {self.capacity})")
        self.head, self.finished, self.transitions = values["head"], values["finished"], values["transitions"]
        self._last = list(values["last"])
        self._slots[np.arange(self.oldest, self.head) % self.capacity] = arrays["slots"]
        for env in range(len(self._episodes)):
            slots, rewards = arrays[f"episode{env}/slots"].tolist(), arrays[f"episode{env}/rewards"].tolist()
            self._episodes[env] = _Episode(slots, rewards)
        shape = (self.segment, *self.shape)
        first, last = self.oldest // self.segment, -(-self.head // self.segment)
        if len(segments) != last - first:
            raise ValueError(f"{len(segments)} segments of frames are named where {last - first} are needed")
        for index, named in enumerate(segments, first):
            path, n = folder / segment_name(index), min(self.head - index * self.segment, self.segment)
            size = int(n * np.prod(self.shape))
            if not path.exists() or path.stat().st_size < size:
                raise ValueError(f"{path} is missing or too short")
            digest = self._hashes[index] = hashlib.sha256()
            if self.folder is None:
                frames = np.empty(shape, np.uint8)
                with open(path, "rb") as file:
                    file.readinto(frames[:n].data)
            else:
                with open(path, "r+b") as file:  # a file that was not memory-mapped ends with its frames
                    _reserve(file.fileno(), int(np.prod(shape)))
                frames = np.memmap(path, np.uint8, "r+", shape=shape)
            digest.update(frames[:n].data)
            if digest.hexdigest() != named["sha256"]:
                raise ValueError(f"{path} is damaged: it is not what was written")
            self._segments[index] = frames
        self._saved = self.head


def _reserve(file: int, size: int) -> None:
    """Room for a whole memory map at once: a full disk is an error here, and would be a crash later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


def segment_name(index: int) -> str:
    return f"frames-{index:06}.u8"


def monte_carlo(rewards: Sequence[float], gamma: float, value: float = 0.0) -> NDArray[np.float32]:
    """sum_k gamma^k r_{t+k} from each step t of an episode on; `value` is what would have come after its end."""
    returns = np.empty(len(rewards), np.float32)
    for t in range(len(rewards) - 1, -1, -1):
        value = rewards[t] + gamma * value
        returns[t] = value
    return returns
