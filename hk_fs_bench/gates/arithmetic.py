"""The arithmetic assertions of an item's `check`, evaluated without running code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
}
TOLERANCE = 1e-9
_MAX_EXPONENT = 64


def _equal(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


# Strict comparisons must not call two equal numbers different for their rounding noise.
_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda a, b: not _equal(a, b),
    ast.Lt: lambda a, b: a < b and not _equal(a, b),
    ast.LtE: lambda a, b: a < b or _equal(a, b),
    ast.Gt: lambda a, b: a > b and not _equal(a, b),
    ast.GtE: lambda a, b: a > b or _equal(a, b),
}


class CheckError(ValueError):
    """An assertion that is no arithmetic comparison over literals."""


def parse(assertion: str) -> ast.Compare:
    """The comparison that `assertion` is; CheckError for anything else."""
    try:
        tree = ast.parse(assertion, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CheckError(f"{assertion!r} is no Python expression") from error
    if not isinstance(tree, ast.Compare):
        raise CheckError(f"{assertion!r} compares nothing")
    return tree


def holds(assertion: str) -> bool:
    """Whether the assertion is true; == has a tolerance of 1e-9."""
    tree = parse(assertion)
    values = [evaluate(side) for side in (tree.left, *tree.comparators)]
    for a, b, op in zip(values, values[1:], tree.ops, strict=False):
        if type(op) not in _COMPARE:
            raise CheckError(f"{assertion!r}: comparison {type(op).__name__} isn't arithmetic")
        if not _COMPARE[type(op)](a, b):
            return False
    return True


def evaluate(node: ast.expr) -> float:
    """The value of an arithmetic expression over numbers; CheckError for anything else."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return evaluate(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = evaluate(left), evaluate(right)
            if isinstance(op, ast.Pow) and abs(b) > _MAX_EXPONENT:
                raise CheckError(f"exponent {b} is too large")
            try:
                result = _BINARY[type(op)](a, b)
            except (ArithmeticError, ValueError) as error:
                raise CheckError(f"{ast.unparse(node)}: {error}") from error
            if isinstance(result, complex):
                raise CheckError(f"{ast.unparse(node)} is no real number")
            return result
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            try:
                return _FUNCTIONS[name](*(evaluate(arg) for arg in args))
            except (TypeError, ArithmeticError, ValueError) as error:
                raise CheckError(f"{ast.unparse(node)}: {error}") from error
    raise CheckError(f"{ast.unparse(node)!r} isn't arithmetic over numbers")


def literals(node: ast.AST) -> list[float]:
    """The numbers written in an expression, in order, repeats kept."""
    return [
        float(child.value)
        for child in ast.walk(node)
        if isinstance(child, ast.Constant) and isinstance(child.value, int | float)
    ]


def derived(assertions: list[str], known: set[float]) -> set[float]:
    """Numbers that follow from `known` by the true assertions.

    An equation whose numbers are known but for one gives that one: `240 + 120 == 360` gives 360,
    `1080**2 + 1440**2 == 1800**2` any of its three. A calculation over known numbers gives its
    result, and its intermediate results, in any assertion. A bare `57 == 57` gives nothing.
    """
    trees = []
    for assertion in assertions:
        try:
            if holds(assertion):
                trees.append(parse(assertion))
        except CheckError:
            continue
    found: set[float] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for tree in trees:
            found |= _consequences(tree, known | found)
    return found


def _consequences(tree: ast.Compare, known: set[float]) -> set[float]:
    found = set()
    sides = [tree.left, *tree.comparators]
    for side in sides:
        for node in ast.walk(side):
            if isinstance(node, ast.BinOp | ast.Call) and set(literals(node)) <= known:
                found.add(round(float(evaluate(node)), 9))
    for a, b, op in zip(sides, sides[1:], tree.ops, strict=False):
        unknown = set(literals(a) + literals(b)) - known
        bare = isinstance(a, ast.Constant) and isinstance(b, ast.Constant)
        if isinstance(op, ast.Eq) and not bare and len(unknown) == 1:
            found |= unknown
    return found
