"""Sums the demo model can do in its head: numbers, brackets, + - * / // % and small powers."""

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

LARGEST_POWER = 64
MOST_DIGITS = 200
DEEPEST = 50

_SUM = re.compile(r"[\d.,()+*/%^x×÷\s-]{1,200}")
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: _power(a, b),
}


def result_of(text: str) -> str | None:
    """Return what a sum comes to, or None if it is no sum that can be done here."""
    if not _SUM.fullmatch(text):
        return None
    plain = re.sub(r"[x×]", "*", text).replace("÷", "/").replace("^", "**").replace(",", "")
    try:
        value = _value(ast.parse(plain.strip(), mode="eval").body, 0)
    except (ArithmeticError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return _shown(value)


def _value(node: ast.expr, depth: int) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()) if depth < DEEPEST:
            return _bounded(Fraction(str(node.value)))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if depth < DEEPEST:
            return -_value(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if depth < DEEPEST:
            act = _OPERATORS[type(op)]
            return _bounded(act(_value(left, depth + 1), _value(right, depth + 1)))
        case _:
            raise ValueError("no sum")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > LARGEST_POWER:
        raise ValueError("too large a power")
    return base ** int(exponent)


def _bounded(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) >= 10**MOST_DIGITS:
        raise ValueError("too large")
    return value


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"
