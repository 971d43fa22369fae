"""Eight entries of a TD update at once, in explicit vector code.

A row update reads rows s and s' and writes row s. They may be the same row, so a compiler left to itself either checks
for that on every step or gives up on vectors. Here all loads of a chunk come before its stores, which is right in
both cases and needs no check. Multiplication and addition stay apart (no fused rounding), so the result has the same
bits as the same formula in NumPy, on every machine.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# A set of at most 8 actions is a byte, one bit each. PICK[set, i] is its i-th action, COUNT[set] how many it has.
COUNT = np.array([actions.bit_count() for actions in range(256)], np.uint8)
PICK = np.zeros((256, 8), np.uint8)
for _actions in range(256):
    PICK[_actions, : COUNT[_actions]] = [a for a in range(8) if _actions >> a & 1]

WIDTH = 8
_DOUBLE, _INT, _LANE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_DOUBLES = ir.VectorType(_DOUBLE, WIDTH)


def _splat(builder: Any, value: Any) -> Any:
    """The vector whose every element is `value`."""
    one = builder.insert_element(
        ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined), value, ir.Constant(_LANE, 0)
    )
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_LANE, WIDTH), [0] * WIDTH))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _DOUBLES.as_pointer())


def _change(context: Any, builder: Any, matrix_type: Any, args: Any) -> tuple[Any, Any, Any]:
    """Load both rows; return where row s lies, its entries, and eta * (TD error)."""
    matrix, row, next_row, eta, gamma = args
    at = _pointer(context, builder, matrix_type, matrix, row)
    old = builder.load(at, align=8)
    ahead = builder.load(_pointer(context, builder, matrix_type, matrix, next_row), align=8)
    target = builder.fmul(_splat(builder, gamma), ahead)
    return at, old, builder.fmul(_splat(builder, eta), builder.fsub(target, old))


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def update_row(typing: Any, matrix: Any, row: Any, next_row: Any, eta: Any, gamma: Any) -> Any:
    """matrix[row:row+8] += eta * (gamma * matrix[next_row:next_row+8] - matrix[row:row+8])"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at, old, change = _change(context, builder, signature.args[0], args)
        builder.store(builder.fadd(old, change), at, align=8)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.int64, types.float64, types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def update_row_and_sums(
    typing: Any, matrix: Any, row: Any, next_row: Any, eta: Any, gamma: Any, sums: Any, i: Any
) -> Any:
    """update_row, and the same change added to the column sums: sums[i:i+8]."""
    integer, real = types.int64, types.float64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at, old, change = _change(context, builder, signature.args[0], args[:5])
        sums_at = _pointer(context, builder, signature.args[5], args[5], args[6])
        total = builder.load(sums_at, align=8)
        builder.store(builder.fadd(old, change), at, align=8)
        builder.store(builder.fadd(total, change), sums_at, align=8)
        return context.get_dummy_value()

    return types.void(matrix, integer, integer, real, real, sums, integer), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def largest(typing: Any, Q: Any, q: Any) -> Any:
    """max(Q[q:q+8])"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best = builder.load(_pointer(context, builder, signature.args[0], *args), align=8)
        for step in (4, 2, 1):
            order = ir.Constant(ir.VectorType(_LANE, WIDTH), [(i + step) % WIDTH for i in range(WIDTH)])
            other = builder.shuffle_vector(best, best, order)
            best = builder.select(builder.fcmp_ordered(">", best, other), best, other)
        return builder.extract_element(best, ir.Constant(_LANE, 0))

    return types.float64(Q, types.uint64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def not_below(typing: Any, Q: Any, q: Any, bound: Any) -> Any:
    """The set of i for which Q[q + i] < bound does not hold, i < 8, one bit each."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = builder.load(_pointer(context, builder, signature.args[0], *args[:2]), align=8)
        bits = builder.fcmp_unordered(">=", values, _splat(builder, args[2]))
        return builder.zext(builder.bitcast(bits, ir.IntType(WIDTH)), _INT)

    return types.uint64(Q, types.uint64, types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def power_of_two(typing: Any, k: Any) -> Any:
    """2^k as a double, -1022 <= k <= 1023, put together from its bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        exponent = builder.add(args[0], ir.Constant(_INT, 1023))
        return builder.bitcast(builder.shl(exponent, ir.Constant(_INT, 52)), _DOUBLE)

    return types.float64(types.int64), codegen
