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


def _change(context: Any, builder: Any, matrix_type: Any, args: Any, first_occupancy: bool) -> tuple[Any, Any, Any]:
    """Load both rows; return where row s lies, its entries, and eta * (TD error)."""
    matrix, row, next_row, hot, eta, gamma = args
    at = _pointer(context, builder, matrix_type, matrix, row)
    old = builder.load(at, align=8)
    ahead = builder.load(_pointer(context, builder, matrix_type, matrix, next_row), align=8)
    ones, zeros = ir.Constant(_DOUBLES, [1.0] * WIDTH), ir.Constant(_DOUBLES, [0.0] * WIDTH)
    column = ir.Constant(ir.VectorType(_INT, WIDTH), list(range(WIDTH)))
    is_hot = builder.icmp_signed("==", column, _splat(builder, hot))
    ahead = builder.fmul(_splat(builder, gamma), ahead)
    if first_occupancy:  # once s is reached nothing more is counted for it
        target = builder.select(is_hot, ones, ahead)
    else:
        target = builder.fadd(builder.select(is_hot, ones, zeros), ahead)
    return at, old, builder.fmul(_splat(builder, eta), builder.fsub(target, old))


def _row_update(first_occupancy: bool) -> Any:
    def update(typing: Any, matrix: Any, row: Any, next_row: Any, hot: Any, eta: Any, gamma: Any) -> Any:
        integer, real = types.int64, types.float64

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at, old, change = _change(context, builder, signature.args[0], args, first_occupancy)
            builder.store(builder.fadd(old, change), at, align=8)
            return context.get_dummy_value()

        return types.void(matrix, integer, integer, integer, real, real), codegen

    return update


update_row = intrinsic(_row_update(first_occupancy=False))
"""matrix[row:row+8] += eta * (1(hot) + gamma * matrix[next_row:next_row+8] - matrix[row:row+8])"""

update_row_first = intrinsic(_row_update(first_occupancy=True))
"""The same with the rule of the FR: where hot, the target is 1 and nothing is added to it."""


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def update_row_and_sums(
    typing: Any, matrix: Any, row: Any, next_row: Any, hot: Any, eta: Any, gamma: Any, sums: Any, i: Any
) -> Any:
    """update_row, and the same change added to the column sums: sums[i:i+8]."""
    integer, real = types.int64, types.float64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at, old, change = _change(context, builder, signature.args[0], args[:6], False)
        sums_at = _pointer(context, builder, signature.args[6], args[6], args[7])
        total = builder.load(sums_at, align=8)
        builder.store(builder.fadd(old, change), at, align=8)
        builder.store(builder.fadd(total, change), sums_at, align=8)
        return context.get_dummy_value()

    return types.void(matrix, integer, integer, integer, real, real, sums, integer), codegen
