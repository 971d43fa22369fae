"""Rows of M, F and N that keep only their entries above a tolerance, for mazes of 10^4 states and more.

A row is a block of a pool: `columns[start : start + length]` and the `values` beside them, in no order. A block has
room for 2^k entries; a row that outgrows its block moves to a larger one, and the old block joins `free[k]`, a chain
linked through `columns`. One pool holds all three matrices: row s of M, of F and of N are rows s, S + s and 2S + s.
These functions are compiled into the kernel that uses them.
"""

from typing import Any, no_type_check

import numpy as np

NONE = 0xFFFFFFFF  # the end of a chain of free blocks; the start of a row that has no block
FIRST_BLOCK = 2  # 2^2 entries


def empty_pool(n_states: int, n_entries: int = 1 << 16) -> tuple[Any, ...]:
    """A pool for M, F and N of n states, each row with room for its first block."""
    rows = 3 * n_states
    n_entries = max(n_entries, rows << FIRST_BLOCK)
    return (
        np.full(rows, NONE, np.uint32),  # start
        np.zeros(rows, np.int32),  # length
        np.zeros(rows, np.uint8),  # k: room for 2^k
        np.full(40, NONE, np.int64),  # free blocks by k; free[0] is where the unused part of the pool begins
        np.zeros(n_entries, np.uint32),  # columns
        np.zeros(n_entries),  # values
        np.zeros(n_states),  # row s' while row s is updated, by column; zeros otherwise
    )


@no_type_check
def clear(pool):
    """Give all blocks back."""
    start, length, room, free, columns, values, ahead = pool
    for row in range(len(start)):
        start[row] = NONE
        length[row] = 0
    for k in range(len(free)):
        free[k] = NONE
    free[0] = 0


@no_type_check
def with_room(pool, s, s_next):
    """The pool, twice as large where the update of rows s and s' might not fit."""
    start, length, room, free, columns, values, ahead = pool
    S = len(ahead)
    most = 64
    for k in range(3):
        most += 4 * (length[k * S + s] + length[k * S + s_next])
    if free[0] + most <= len(columns):
        return pool
    more_columns, more_values = np.empty(2 * len(columns), np.uint32), np.empty(2 * len(values))
    for i in range(free[0]):
        more_columns[i] = columns[i]
        more_values[i] = values[i]
    return start, length, room, free, more_columns, more_values, ahead


@no_type_check
def entry(pool, row, column):
    """The entry of a row at `column`; 0 where none is kept."""
    start, length, room, free, columns, values, ahead = pool
    first = np.int64(start[row])
    for i in range(first, first + length[row]):
        if columns[i] == column:
            return values[i]
    return 0.0


@no_type_check
def append(pool, row, column, value):
    """Add an entry to a row, which moves to a larger block when it is full."""
    start, length, room, free, columns, values, ahead = pool
    n = length[row]
    old = np.int64(start[row])
    if old == NONE or n == 1 << room[row]:
        k = FIRST_BLOCK if old == NONE else room[row] + 1
        new = free[k]
        if new == NONE:
            new = free[0]
            free[0] += 1 << k
        else:
            free[k] = columns[new]
        for i in range(n):
            columns[new + i] = columns[old + i]
            values[new + i] = values[old + i]
        if old != NONE:
            columns[old] = free[room[row]]
            free[room[row]] = old
        start[row] = new
        room[row] = k
        old = new
    columns[old + n] = column
    values[old + n] = value
    length[row] = n + 1


@no_type_check
def update_sparse_row(pool, matrix, s, s_next, eta, gamma, tolerance, sums):
    """Row s += eta * (1(s) + gamma * row s' - row s) of M (matrix 0), F (1: s counts once, now) or N (2).

    Entries that fall below the tolerance are dropped. Column sums of M follow in sums[0]. Returns the change of the
    row's sum.
    """
    start, length, room, free, columns, values, ahead = pool
    S = len(ahead)
    row = matrix * S + s
    next_row = matrix * S + s_next
    first = np.int64(start[next_row])
    for i in range(first, first + length[next_row]):
        ahead[columns[i]] = values[i]
    ahead_of_s = 0.0 if matrix == 1 else ahead[s]
    target_at_s = 1.0 + gamma * ahead_of_s
    ahead[s] = 0.0
    unpaid = True  # whether the entry at s itself is still to be added
    change = 0.0
    first = np.int64(start[row])
    n = np.int64(length[row])
    i = 0
    while i < n:
        j = np.int64(columns[first + i])
        old = values[first + i]
        target = gamma * ahead[j]
        ahead[j] = 0.0
        if j == s:
            target = target_at_s
            unpaid = False
        new = old + eta * (target - old)
        if new >= tolerance:
            values[first + i] = new
            i += 1
        else:
            new = 0.0
            n -= 1
            columns[first + i] = columns[first + n]
            values[first + i] = values[first + n]
        change += new - old
        if matrix == 0:
            sums[0, j] += new - old
    length[row] = n
    if unpaid:
        append(pool, row, s, eta * target_at_s)
        change += eta * target_at_s
        if matrix == 0:
            sums[0, s] += eta * target_at_s
    first = np.int64(start[next_row])
    for i in range(first, first + (length[next_row] if next_row != row else 0)):
        j = np.int64(columns[i])
        new = eta * (gamma * ahead[j])  # zero where row s had an entry of its own
        ahead[j] = 0.0
        if new >= tolerance:
            append(pool, row, j, new)
            change += new
            if matrix == 0:
                sums[0, j] += new
    return change
