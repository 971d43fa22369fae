"""Helpers in the place of their calls: the text means what it meant, seen by running both in Python."""

import ast
import inspect

import pytest

import spie
from spie.engine import specialise
from spie.engine.inline import inlined


def double(x):
    x = 2 * x
    return x


def sign(x):
    if x < 0:
        return -1
    if x == 0:
        return 0
    return 1


def push(log, x):
    log.append(x)
    log[0] += x
    return log[0]


def clear(log):
    log[0] = 0


def first_above(log, bound):
    for x in log:
        if x > bound:
            return x
    return bound


def both(x, y):
    if x > y:
        return y, x
    return x, y


def maybe_push(log, x):
    if x > 2:
        push(log, x)
        return
    log[0] -= 1


def length(log):
    return log[0] + len(log)


def writes_from_a_loop(log, x):
    for k in range(3):
        log.append(k)
        log[0] += k
        if k == x:
            return k
    return x


HELPERS = (length, writes_from_a_loop, double, sign, push, clear, first_above, both, maybe_push)


def one_after_the_other(log, x):
    a = double(x + 1)
    x = double(x)
    return a, x, double(double(x))


def early_returns(log, x):
    y = [sign(k - x) for k in range(3)]
    z = sign(x)
    if sign(z) > 0:
        z += 10
    return y, z


def order_of_writes(log, x):
    y = log[0] + push(log, x)  # the first is read before
    z = push(log, push(log, x)) + log[0]
    log[0] += push(log, x)
    log[0] += double(first_above(log, push(log, x))) + sign(log[0])
    u = first_above(log, 0) + length(log) * log[0] + writes_from_a_loop(log, x) + length(log) + length(log)
    w = push(log, x) * 2 + x
    v = length(log) + double(writes_from_a_loop(log, x)) + length(log)
    return y, z, u, v, w, push(log, log[0])


def not_always_reached(log, x):
    y = push(log, x) if x > 1 else 0
    z = x > 1 and push(log, x) > 3
    while sign(x) > 0:
        x -= 1
    return y, z, x, push(log, 5) if push(log, 0) > 2 else 7


def several_values(log, x):
    low, high = both(x, 2)
    high, low = both(low, high)
    pair = both(high, double(low))
    clear(log)
    return low, high, pair


def from_within_a_loop(log, x):
    maybe_push(log, x)
    y = first_above(log, bound=x)
    for k in range(double(2)):
        if k == x:
            continue
        y += sign(x=k)
    return y


def names_of_its_own(log, x):
    y = 100
    log[0] = both(y=double(x), x=y)[0]
    return x, y


KERNELS = (
    one_after_the_other, early_returns, order_of_writes, not_always_reached, several_values, from_within_a_loop,
    names_of_its_own,
)  # fmt: skip


def rewritten(kernel):
    """The functions after inlining, as text, and the kernel of that text."""
    text = "\n".join(inlined([inspect.getsource(function) for function in (*HELPERS, kernel)]))
    names = {}
    exec(text, names)
    return text, names[kernel.__name__]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_a_text_without_calls_does_the_same(kernel):
    _, other = rewritten(kernel)
    for x in range(-2, 6):
        log, same_log = [1, 4], [1, 4]
        assert other(same_log, x) == kernel(log, x)
        assert same_log == log


def test_what_can_be_put_in_place_is_not_called_and_not_kept():
    left = {kernel.__name__: set(HELPER_NAMES & names_in(rewritten(kernel)[0])) for kernel in KERNELS}
    assert left == {
        "one_after_the_other": set(),
        "early_returns": {"sign"},  # within a comprehension
        "order_of_writes": {"double", "first_above", "length", "push", "sign", "writes_from_a_loop"},
        "not_always_reached": {"push", "sign"},
        "several_values": set(),
        "from_within_a_loop": {"first_above"},
        "names_of_its_own": set(),
    }


HELPER_NAMES = {helper.__name__ for helper in HELPERS}


def names_in(text):
    tree = ast.parse(text)
    defined = {node.name for node in tree.body}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert defined & HELPER_NAMES == called & HELPER_NAMES
    return called


def test_a_large_function_with_several_callers_stays_one():
    body = "\n".join(f"    x = x * {i} + {i} * y - {i}" for i in range(40))
    large = f"def large(x, y):\n{body}\n    return x"
    once, twice = "def kernel(x): return large(x, 1)", "def kernel(x): return large(x, 1) + large(2, x)"
    assert len(inlined([large, once])) == 1
    assert len(inlined([large, twice])) == 2


class Enough(Exception):
    """The texts are known; nothing need be compiled."""


@pytest.mark.parametrize(
    ("agent", "left"),
    [
        (spie.Sarsa(), ["reset"]),
        (spie.Sarsa(reward="sr-pr", next_action="carry", bonus_from="previous"), ["reset"]),
        (spie.Sarsa(policy="softmax", target="expected"), ["exponential", "softmax_weights", "reset"]),
        (spie.Sarsa(sparse=True), ["append", "entry", "reset"]),
        (spie.LinearQ(reward="sf-pf"), ["times"]),
        (spie.Planner(), ["reset", "unseen", "unit_of", "back_up"]),
    ],
    ids=repr,
)
def test_little_of_a_kernel_is_compiled_by_itself(agent, left, monkeypatch):
    """What is large and has several callers, or returns from within a loop."""

    def load(head, texts, *_):
        raise Enough(texts)

    monkeypatch.setattr(specialise, "_load", load)
    task = spie.mountain_car() if isinstance(agent, spie.LinearQ) else spie.grid("four-rooms", "goal")
    with pytest.raises(Enough) as found:
        agent.run(task, 10, episodes=1)
    *helpers, _ = inlined(found.value.args[0])
    assert {ast.parse(text).body[0].name for text in helpers} == set(left)
