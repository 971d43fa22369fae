"""Lanes: many runs of one kernel, each with a random stream of its own, spread over threads."""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, no_type_check

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[float], None]  # with the share that is done


@no_type_check
def mix(word):
    """SplitMix64's output function: equally spaced words in, random words out."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def random_streams(seeds: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Key and stride of each seed's stream: its word i is mix(key + i * stride).

    Every stream has an odd stride of its own, as in SplittableRandom (Steele, Lea and Flood, 2014), so that no two of
    them are windows of one sequence.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    word = (np.uint64(2) * seeds.astype(np.uint64) + np.uint64(1)) * golden
    stride = mix(word + golden) | np.uint64(1)
    weak = np.bitwise_count(stride ^ (stride >> np.uint64(1))) < 24  # bits that change too seldom mix badly
    return mix(word), np.where(weak, stride ^ np.uint64(0xAAAAAAAAAAAAAAAA), stride)


def seed_array(seeds: int | Sequence[int]) -> NDArray[np.int64]:
    """The seeds meant by a count n (0 ... n-1) or by a sequence, checked."""
    if isinstance(seeds, int | np.integer):
        if seeds < 1:
            raise ValueError(f"seeds must be a count of at least 1 or a sequence of seeds, not {seeds}")
        check_memory(8.0 * min(seeds, 2**63), f"{seeds:,} seeds", "ask for fewer at once")
        return np.arange(seeds, dtype=np.int64)
    try:
        array = np.asarray(seeds)
    except ValueError:  # rows of different lengths
        array = np.array(())
    if array.dtype == object and array.ndim == 1 and all(isinstance(n, int) for n in seeds):  # more than 64 bits
        raise ValueError(f"seeds must lie in 0 ... 2^63 - 1, not {max(seeds)}")
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError("seeds must be a count or a sequence of whole numbers, at least one")
    if array.min() < 0 or array.max() >= 2**63:
        raise ValueError(f"seeds must lie in 0 ... 2^63 - 1, not {array.min() if array.min() < 0 else array.max()}")
    values, counts = np.unique(array, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"seed {values[counts.argmax()]} is given twice; a seed always gives the same run")
    return array.astype(np.int64)


def machine_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return math.inf


def check_memory(n_bytes: float, what: str, cure: str) -> None:
    """Refuse what this machine's memory cannot hold, before it is tried."""
    have = machine_memory()
    if n_bytes > have:
        raise ValueError(f"{what} would need {n_bytes / 1e9:,.1f} GB and this machine has {have / 1e9:,.1f} GB; {cure}")


def aligned_zeros(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros on a 64-byte boundary, so that 8 entries of a padded row, or 16 of float32, lie in one cache line.

    The system hands out the pages as they are touched: a large matrix costs what is used of it.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    first = -raw.ctypes.data % 64
    zeros: NDArray[Any] = raw[first : first + size].view(dtype)
    return zeros.reshape(shape)


def run_chunks(
    chunks: Sequence[tuple[Callable[[slice], Any], slice]], threads: int | None, progress: Progress | None
) -> None:
    """Call each function with its slice of lanes, on `threads` threads (None: one per processor)."""
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = sum(lanes.stop - lanes.start for _, lanes in chunks)
    done = 0
    pool = ThreadPoolExecutor(max(1, threads))
    try:
        for (_, lanes), _ in zip(chunks, pool.map(lambda chunk: chunk[0](chunk[1]), chunks), strict=True):
            done += lanes.stop - lanes.start
            if progress is not None:
                progress(done / total)
    finally:
        pool.shutdown(
            cancel_futures=True
        )  # Ctrl-C: what has not begun need not; a second one does not wait for the rest
