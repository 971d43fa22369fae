"""Products of vectors and matrices in explicit vector code, for kernels whose learners are linear in features.

A compiler may not reorder a sum, so left to itself it adds one number after the other. Here sums run in eight columns
and, within a matrix, four rows at a time. Vectors lie within flat arrays, at a place given with each, and their length
is a multiple of 8, padded with zeros. Where a product is added, rounding happens once, on every machine: the fused
operation is asked for by name, not left to the compiler.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spie.engine.simd import _DOUBLES, _INT, WIDTH, _pointer, _splat

SUMS = 4  # under way at a time, to hide the latency of an addition
ROWS, COLUMNS = 4, 4  # of a matrix, the latter in eights: taken together in one round of a loop
WAITING = 4  # changes to a matrix that are made together: to write it costs more than to remember them for a while
SINE = [(-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]  # sin(2 pi v) / v
_ZEROS = ir.Constant(_DOUBLES, [0.0] * WIDTH)


def _call(builder: Any, name: str, *vectors: Any) -> Any:
    """An operation that LLVM knows by name, on vectors."""
    full_name = f"llvm.{name}.v{WIDTH}f64"
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES] * len(vectors))
    function = builder.module.globals.get(full_name) or ir.Function(builder.module, kind, full_name)
    return builder.call(function, vectors)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return _call(builder, "fma", a, b, c)


def _constant(number: float) -> Any:
    return ir.Constant(_DOUBLES, [number] * WIDTH)


def _total(builder: Any, vector: Any) -> Any:
    """The sum of a vector's elements, by halves."""
    width = WIDTH
    while width > 1:
        width //= 2
        halves = [
            builder.shuffle_vector(
                vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width)))
            )
            for first in (0, width)
        ]
        vector = builder.fadd(*halves)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


class _Vectors:
    """Loads and stores of eight numbers of the flat arrays among an intrinsic's arguments."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.types, self.args = context, builder, signature.args, args

    def at(self, array: int, index: Any) -> Any:
        """Where the eight numbers lie: argument `array` is the flat array, the one after it the vector's place."""
        place = self.builder.add(self.args[array + 1], index)
        return _pointer(self.context, self.builder, self.types[array], self.args[array], place)

    def number_at(self, array: int, index: Any) -> Any:
        """Where a single number lies."""
        data = self.context.make_array(self.types[array])(self.context, self.builder, self.args[array]).data
        return self.builder.gep(data, [self.builder.add(self.args[array + 1], index)])

    def load(self, array: int, index: Any) -> Any:
        return self.builder.load(self.at(array, index), align=8)


def _loop(builder: Any, length: Any, step: int) -> Any:
    zero, step_ = ir.Constant(_INT, 0), ir.Constant(_INT, step)
    return cgutils.for_range_slice(builder, zero, length, step_, inc=True)


def _sums(builder: Any, n: int) -> list[Any]:
    """Places for n vector sums, now zero; LLVM keeps them in registers."""
    places = [cgutils.alloca_once(builder, _DOUBLES) for _ in range(n)]  # type: ignore[no-untyped-call]
    for place in places:
        builder.store(_ZEROS, place)
    return places


def _eights(builder: Any, length: Any, together: int) -> Iterator[tuple[int, Any]]:
    """Where each eight numbers of a vector begin, in a loop over `together` of them while that lasts, then over one.

    Each comes with its number within the loop. A loop over one at a time is the slower half of reading a matrix.
    """
    whole = builder.and_(length, ir.Constant(_INT, -together * WIDTH))
    for start, stop, n in ((ir.Constant(_INT, 0), whole, together), (whole, length, 1)):
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(_INT, n * WIDTH), inc=True) as (index, _):
            for i in range(n):
                yield i, builder.add(index, ir.Constant(_INT, i * WIDTH))


def _reduction(term: Callable[[Any, Any, Any, Any], Any]) -> Callable[..., Any]:
    """Code for a sum over all eights of a vector, in four sums while that lasts; `term` adds one eight to a sum."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors, length = _Vectors(context, builder, signature, args), args[-1]
        sums = _sums(builder, SUMS)
        for i, here in _eights(builder, length, SUMS):
            builder.store(term(vectors, builder, here, builder.load(sums[i])), sums[i])
        first, second, third, fourth = (builder.load(place) for place in sums)
        return _total(builder, builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth)))

    return codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def dot(typing: Any, x: Any, x_at: Any, y: Any, y_at: Any, length: Any) -> Any:
    """x . y"""

    def term(vectors: Any, builder: Any, index: Any, total: Any) -> Any:
        return _fma(builder, vectors.load(0, index), vectors.load(2, index), total)

    return types.float64(x, types.int64, y, types.int64, types.int64), _reduction(term)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def norm_1(typing: Any, x: Any, x_at: Any, length: Any) -> Any:
    """|x|_1"""

    def term(vectors: Any, builder: Any, index: Any, total: Any) -> Any:
        return builder.fadd(total, _call(builder, "fabs", vectors.load(0, index)))

    return types.float64(x, types.int64, types.int64), _reduction(term)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def add_scaled(typing: Any, y: Any, y_at: Any, factor: Any, x: Any, x_at: Any, length: Any) -> Any:
    """y += factor * x"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors, scale = _Vectors(context, builder, signature, args), _splat(builder, args[2])
        with _loop(builder, args[-1], WIDTH) as (index, _):
            total = _fma(builder, scale, vectors.load(3, index), vectors.load(0, index))
            builder.store(total, vectors.at(0, index), align=8)
        return context.get_dummy_value()

    return types.void(y, types.int64, types.float64, x, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def copy(typing: Any, y: Any, y_at: Any, x: Any, x_at: Any, length: Any) -> Any:
    """y = x"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        with _loop(builder, args[-1], WIDTH) as (index, _):
            builder.store(vectors.load(2, index), vectors.at(0, index), align=8)
        return context.get_dummy_value()

    return types.void(y, types.int64, x, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def cosines(typing: Any, x: Any, x_at: Any, length: Any) -> Any:
    """x = cos(2 pi x), each number to 1e-15.

    It is sin(2 pi v), v being how far x is from the nearest quarter turn with a cosine of 0, at most 1/4; and there
    that is its Taylor series up to the power of 21. The C library, a number at a time, would take ten times longer.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        with _loop(builder, args[-1], WIDTH) as (index, _):
            turns = vectors.load(0, index)
            nearest = _call(builder, "floor", builder.fadd(turns, _constant(0.5)))
            v = builder.fsub(_constant(0.25), _call(builder, "fabs", builder.fsub(turns, nearest)))
            square = builder.fmul(v, v)
            series = _constant(SINE[-1])
            for coefficient in SINE[-2::-1]:
                series = _fma(builder, series, square, _constant(coefficient))
            builder.store(builder.fmul(v, series), vectors.at(0, index), align=8)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64), codegen


def _product(terms: int) -> Any:
    """Code for y = A x after A += the sum of `terms` products u p^T, in one pass over A.

    ROWS rows are taken at a time, and of them COLUMNS eights; how many makes no difference to the numbers.
    """

    def product(
        typing: Any, y: Any, y_at: Any, A: Any, A_at: Any, x: Any, x_at: Any, u: Any, u_at: Any, p: Any, p_at: Any,
        length: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vectors, length = _Vectors(context, builder, signature, args), args[-1]
            with _loop(builder, length, ROWS) as (row, _):
                these = [builder.add(row, ir.Constant(_INT, i)) for i in range(ROWS)]
                begins = [builder.mul(i, length) for i in these]
                later = [builder.mul(length, ir.Constant(_INT, term)) for term in range(terms)]
                scales = [
                    [_splat(builder, builder.load(vectors.number_at(6, builder.add(i, term)))) for term in later]
                    for i in these
                ]
                sums = _sums(builder, ROWS)
                for _, column in _eights(builder, length, COLUMNS):
                    factor = vectors.load(4, column)
                    changes = [vectors.load(8, builder.add(column, term)) for term in later]
                    for i in range(ROWS):
                        place = vectors.at(2, builder.add(begins[i], column))
                        entries = builder.load(place, align=8)
                        for scale, change in zip(scales[i], changes, strict=True):
                            entries = _fma(builder, scale, change, entries)
                        if terms:
                            builder.store(entries, place, align=8)
                        builder.store(_fma(builder, entries, factor, builder.load(sums[i])), sums[i])
                for i in range(ROWS):
                    builder.store(_total(builder, builder.load(sums[i])), vectors.number_at(0, these[i]))
            return context.get_dummy_value()

        i = types.int64
        return types.void(y, i, A, i, x, i, u, i, p, i, i), codegen

    return intrinsic(product)


product = _product(0)
"""y = A x; u and p are not read."""

update_product = _product(WAITING)
"""y = A x after A += the sum of WAITING products u p^T; the u lie one after the other, likewise the p."""
