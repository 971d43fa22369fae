"""What `spie/engine/simd.py` and `matrix.py` do in explicit vector code, as loops that a compiler sees for itself."""

import math

import numpy as np
from numba import njit


@njit
def update_row(matrix, row, next_row, eta, gamma):
    for j in range(8):
        matrix[row + j] += eta * (gamma * matrix[next_row + j] - matrix[row + j])


@njit
def update_row_and_sums(matrix, row, next_row, eta, gamma, sums, i):
    for j in range(8):
        change = eta * (gamma * matrix[next_row + j] - matrix[row + j])
        matrix[row + j] += change
        sums[0, i + j] += change


@njit
def largest(Q, q):
    best = Q[q]
    for i in range(1, 8):
        best = max(best, Q[q + np.uint64(i)])
    return best


@njit
def not_below(Q, q, bound):
    found = np.uint64(0)
    for i in range(8):
        found |= np.uint64(not Q[q + np.uint64(i)] < bound) << np.uint64(i)
    return found


@njit
def copy(y, y_at, x, x_at, length):
    for i in range(length):
        y[y_at + i] = x[x_at + i]


@njit
def add_scaled(y, y_at, factor, x, x_at, length):
    for i in range(length):
        y[y_at + i] += factor * x[x_at + i]


@njit
def dot(x, x_at, y, y_at, length):
    total = 0.0
    for i in range(length):
        total += x[x_at + i] * y[y_at + i]
    return total


@njit
def norm_1(x, x_at, length):
    total = 0.0
    for i in range(length):
        total += abs(x[x_at + i])
    return total


@njit
def cosines(x, x_at, length):
    for i in range(length):
        x[x_at + i] = math.cos(2 * math.pi * x[x_at + i])


@njit
def product(y, y_at, A, A_at, x, x_at, u, u_at, p, p_at, length):
    for i in range(length):
        y[y_at + i] = dot(A, A_at + i * length, x, x_at, length)
