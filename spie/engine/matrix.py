"""Products of vectors and matrices in explicit vector code, for kernels whose learners are linear in features.

A compiler may not reorder a sum, so left to itself it adds one number after the other. Here sums run in eight columns
and, within a matrix, four rows at a time. Vectors lie within flat arrays, at a place given with each, and their length
is a multiple of 8, padded with zeros. Where a product is added, rounding happens once, on every machine: the fused
operation is asked for by name, not left to the compiler.

Arrays of float32 are taken in sixteens, and the length is a multiple of 16. All arrays of a call are of one kind;
single numbers that come in and go out are float64 all the same.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spie.engine.simd import _INT, _LANE

SUMS = 4  # under way at a time, to hide the latency of an addition
ROWS, COLUMNS = 4, 4  # of a matrix, the latter in vectors: taken together in one round of a loop
WAITING = 4  # changes to a matrix that are made together: to write it costs more than to remember them for a while
SINE = [(-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]  # sin(2 pi v) / v


class VectorKind(NamedTuple):
    """A kind of number, and how many of them make a vector."""

    element: Any
    width: int
    name: str  # in LLVM
    size: int  # bytes of one

    @property
    def vector(self) -> Any:
        return ir.VectorType(self.element, self.width)

    def constant(self, number: float) -> Any:
        return ir.Constant(self.vector, [number] * self.width)

    def call(self, builder: Any, name: str, *vectors: Any) -> Any:
        """An operation that LLVM knows by name, on vectors."""
        full_name = f"llvm.{name}.v{self.width}{self.name}"
        kind = ir.FunctionType(self.vector, [self.vector] * len(vectors))
        function = builder.module.globals.get(full_name) or ir.Function(builder.module, kind, full_name)
        return builder.call(function, vectors)

    def fma(self, builder: Any, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once."""
        return self.call(builder, "fma", a, b, c)

    def splat(self, builder: Any, value: Any) -> Any:
        """The vector whose every element is `value`, which may be float64."""
        if value.type != self.element:
            value = builder.fptrunc(value, self.element)
        one = builder.insert_element(ir.Constant(self.vector, ir.Undefined), value, ir.Constant(_LANE, 0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_LANE, self.width), [0] * self.width))

    def total(self, builder: Any, vector: Any) -> Any:
        """The sum of a vector's elements, by halves."""
        width = self.width
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    vector, vector, ir.Constant(ir.VectorType(_LANE, width), list(range(first, first + width)))
                )
                for first in (0, width)
            ]
            vector = builder.fadd(*halves)
        return builder.extract_element(vector, ir.Constant(_LANE, 0))

    def sums(self, builder: Any, n: int) -> list[Any]:
        """Places for n vector sums, now zero; LLVM keeps them in registers."""
        places = [cgutils.alloca_once(builder, self.vector) for _ in range(n)]  # type: ignore[no-untyped-call]
        for place in places:
            builder.store(self.constant(0.0), place)
        return places


DOUBLES = VectorKind(ir.DoubleType(), 8, "f64", 8)
SINGLES = VectorKind(ir.FloatType(), 16, "f32", 4)


class _Vectors:
    """Loads and stores of vectors of the flat arrays among an intrinsic's arguments, of which the first is one."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.types, self.args = context, builder, signature.args, args
        self.numbers = SINGLES if signature.args[0].dtype == types.float32 else DOUBLES

    def at(self, array: int, index: Any) -> Any:
        """Where a vector lies: argument `array` is the flat array, the one after it the place in it."""
        return self.builder.bitcast(self.number_at(array, index), self.numbers.vector.as_pointer())

    def number_at(self, array: int, index: Any) -> Any:
        """Where a single number lies."""
        data = self.context.make_array(self.types[array])(self.context, self.builder, self.args[array]).data
        return self.builder.gep(data, [self.builder.add(self.args[array + 1], index)])

    def load(self, array: int, index: Any) -> Any:
        return self.builder.load(self.at(array, index), align=self.numbers.size)

    def store(self, value: Any, array: int, index: Any) -> None:
        self.builder.store(value, self.at(array, index), align=self.numbers.size)


def _loop(builder: Any, length: Any, step: int) -> Any:
    zero, step_ = ir.Constant(_INT, 0), ir.Constant(_INT, step)
    return cgutils.for_range_slice(builder, zero, length, step_, inc=True)


def _each(builder: Any, numbers: VectorKind, length: Any, together: int) -> Iterator[tuple[int, Any]]:
    """Where each vector of a row begins, in a loop over `together` of them while that lasts, then over one.

    Each comes with its number within the loop. A loop over one at a time is the slower half of reading a matrix.
    """
    whole = builder.and_(length, ir.Constant(_INT, -together * numbers.width))
    for start, stop, n in ((ir.Constant(_INT, 0), whole, together), (whole, length, 1)):
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(_INT, n * numbers.width), inc=True) as (
            index,
            _,
        ):
            for i in range(n):
                yield i, builder.add(index, ir.Constant(_INT, i * numbers.width))


def _reduction(term: Callable[[Any, Any, Any, Any], Any]) -> Callable[..., Any]:
    """Code for a sum over all vectors of a row, in four sums while that lasts; `term` adds one vector to a sum."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors, length = _Vectors(context, builder, signature, args), args[-1]
        numbers = vectors.numbers
        sums = numbers.sums(builder, SUMS)
        for i, here in _each(builder, numbers, length, SUMS):
            builder.store(term(vectors, builder, here, builder.load(sums[i])), sums[i])
        first, second, third, fourth = (builder.load(place) for place in sums)
        total = numbers.total(builder, builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth)))
        return total if numbers is DOUBLES else builder.fpext(total, DOUBLES.element)

    return codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def dot(typing: Any, x: Any, x_at: Any, y: Any, y_at: Any, length: Any) -> Any:
    """x . y"""

    def term(vectors: Any, builder: Any, index: Any, total: Any) -> Any:
        return vectors.numbers.fma(builder, vectors.load(0, index), vectors.load(2, index), total)

    return types.float64(x, types.int64, y, types.int64, types.int64), _reduction(term)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def norm_1(typing: Any, x: Any, x_at: Any, length: Any) -> Any:
    """|x|_1"""

    def term(vectors: Any, builder: Any, index: Any, total: Any) -> Any:
        return builder.fadd(total, vectors.numbers.call(builder, "fabs", vectors.load(0, index)))

    return types.float64(x, types.int64, types.int64), _reduction(term)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def add_scaled(typing: Any, y: Any, y_at: Any, factor: Any, x: Any, x_at: Any, length: Any) -> Any:
    """y += factor * x"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        numbers = vectors.numbers
        scale = numbers.splat(builder, args[2])
        with _loop(builder, args[-1], numbers.width) as (index, _):
            vectors.store(numbers.fma(builder, scale, vectors.load(3, index), vectors.load(0, index)), 0, index)
        return context.get_dummy_value()

    return types.void(y, types.int64, types.float64, x, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def copy(typing: Any, y: Any, y_at: Any, x: Any, x_at: Any, length: Any) -> Any:
    """y = x"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        with _loop(builder, args[-1], vectors.numbers.width) as (index, _):
            vectors.store(vectors.load(2, index), 0, index)
        return context.get_dummy_value()

    return types.void(y, types.int64, x, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def cosines(typing: Any, x: Any, x_at: Any, length: Any) -> Any:
    """x = cos(2 pi x), each number to 1e-15; of float64 alone.

    It is sin(2 pi v), v being how far x is from the nearest quarter turn with a cosine of 0, at most 1/4; and there
    that is its Taylor series up to the power of 21. The C library, a number at a time, would take ten times longer.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        fma, call, constant = DOUBLES.fma, DOUBLES.call, DOUBLES.constant
        with _loop(builder, args[-1], DOUBLES.width) as (index, _):
            turns = vectors.load(0, index)
            nearest = call(builder, "floor", builder.fadd(turns, constant(0.5)))
            v = builder.fsub(constant(0.25), call(builder, "fabs", builder.fsub(turns, nearest)))
            square = builder.fmul(v, v)
            series = constant(SINE[-1])
            for coefficient in SINE[-2::-1]:
                series = fma(builder, series, square, constant(coefficient))
            vectors.store(builder.fmul(v, series), 0, index)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64), codegen


def _product(terms: int) -> Any:
    """Code for y = A x after A += the sum of `terms` products u p^T, in one pass over A.

    ROWS rows are taken at a time, and of them COLUMNS vectors; how many makes no difference to the numbers.
    """

    def product(
        typing: Any, y: Any, y_at: Any, A: Any, A_at: Any, x: Any, x_at: Any, u: Any, u_at: Any, p: Any, p_at: Any,
        length: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vectors, length = _Vectors(context, builder, signature, args), args[-1]
            numbers = vectors.numbers
            with _loop(builder, length, ROWS) as (row, _):
                these = [builder.add(row, ir.Constant(_INT, i)) for i in range(ROWS)]
                begins = [builder.mul(i, length) for i in these]
                later = [builder.mul(length, ir.Constant(_INT, term)) for term in range(terms)]
                scales = [
                    [numbers.splat(builder, builder.load(vectors.number_at(6, builder.add(i, term)))) for term in later]
                    for i in these
                ]
                sums = numbers.sums(builder, ROWS)
                for _, column in _each(builder, numbers, length, COLUMNS):
                    factor = vectors.load(4, column)
                    changes = [vectors.load(8, builder.add(column, term)) for term in later]
                    for i in range(ROWS):
                        here = builder.add(begins[i], column)
                        entries = vectors.load(2, here)
                        for scale, change in zip(scales[i], changes, strict=True):
                            entries = numbers.fma(builder, scale, change, entries)
                        if terms:
                            vectors.store(entries, 2, here)
                        builder.store(numbers.fma(builder, entries, factor, builder.load(sums[i])), sums[i])
                for i in range(ROWS):
                    builder.store(numbers.total(builder, builder.load(sums[i])), vectors.number_at(0, these[i]))
            return context.get_dummy_value()

        i = types.int64
        return types.void(y, i, A, i, x, i, u, i, p, i, i), codegen

    return intrinsic(product)


product = _product(0)
"""y = A x; u and p are not read."""

update_product = _product(WAITING)
"""y = A x after A += the sum of WAITING products u p^T; the u lie one after the other, likewise the p."""
