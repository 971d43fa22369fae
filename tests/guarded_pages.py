"""Vector code on arrays that end, or begin, where memory may not be touched; for test_bounds.py, in its own process.

One entry too many, read or written, ends this process. Prints "unharmed" at the end.
"""

import ctypes
import mmap
import sys

import numpy as np
from numba import njit

from spie.engine.matrix import WAITING, add_scaled, copy, cosines, dot, norm_1, product, update_product
from spie.engine.simd import largest, not_below, update_row, update_row_and_sums

PAGE, D = mmap.PAGESIZE, 24
NOTHING = 0  # PROT_NONE
_kept = []


def guarded(n: int, at_end: bool) -> np.ndarray:
    """n numbers that lie against a page that may not be touched, behind them or before them."""
    pages = -(-8 * n // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page * PAGE), PAGE, NOTHING):
            sys.exit("mprotect failed")
    _kept.append(memory)
    first = (pages + 1) * PAGE - 8 * n if at_end else PAGE
    array = np.frombuffer(memory, np.float64, n, first)
    array[:] = np.linspace(-1, 1, n)
    return array


@njit
def tables(M, sums, Q, n):
    """What a table agent does with the last entries of its arrays."""
    for j in range(0, n, 8):
        update_row(M, n + j, j, 0.1, 0.9)
        update_row_and_sums(M, j, n + j, 0.1, 0.9, sums, j)
    last = np.uint64(len(Q) - 8)
    best = largest(Q, last)
    return best, not_below(Q, last, best)


@njit
def vectors(x, y, A, u, p, D):
    """What a linear agent does."""
    cosines(x, 0, D)
    sums = dot(x, 0, y, 0, D) + norm_1(y, 0, D)
    copy(x, D, y, 0, D)
    add_scaled(x, D, 0.5, x, 0, D)
    product(y, D, A, 0, x, 0, u, 0, p, 0, D)
    update_product(y, 2 * D, A, 0, x, 0, u, 0, p, 0, D)
    return sums


def main() -> None:
    too_far = "too-far" in sys.argv
    for at_end in (True, False):
        M, sums, Q = guarded(2 * D, at_end), guarded(D, at_end), guarded(D, at_end)
        best, among = tables(M, sums, Q, D)
        assert best == Q[-8:].max()
        assert among == 1 << 7  # the last is the largest
        x, y, A = guarded(2 * D, at_end), guarded(3 * D, at_end), guarded(D * D, at_end)
        u, p = guarded(WAITING * D, at_end), guarded(WAITING * D, at_end)
        vectors(x, y, A, u, p, D)
        if too_far:
            tables(M, sums[1:], Q, D)  # one entry too many
    print("unharmed")


if __name__ == "__main__":
    main()
