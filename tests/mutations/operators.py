"""The small mistakes that can be made in a file: each is one change of its text.

Left alone are docstrings, annotations, defaults of arguments (a matter of taste, not of right and wrong), decorators,
imports, error messages, and formatted strings, whose parts have no place of their own in Python 3.11.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "amin": "amax", "minimum": "maximum", "argmin": "argmax", "any": "all"}
NAMES |= {after: before for before, after in NAMES.items()}
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Mutant:
    """A change of one file: the bytes from `begin` to `end` are replaced."""

    path: str
    line: int
    column: int
    text: str  # the line
    operator: str
    begin: int
    end: int
    before: str
    after: str

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    @property
    def change(self) -> str:
        return f"{' '.join(self.before.split())} -> {self.after}"

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()


def mutants(source: str, path: str = "") -> list[Mutant]:
    """Every mutant of a file, in the order of the text."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    found = []
    for operator, node, after in changes(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before, text = source.encode()[begin:end].decode(), lines[node.lineno - 1].decode().strip()
        found.append(Mutant(path, node.lineno, node.col_offset + 1, text, operator, begin, end, before, after))
    return sorted(found, key=lambda each: (each.begin, each.end, each.operator, each.after))


def changes(tree: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Kind of change, what is replaced, and the text in its place."""
    for node in walk(tree):
        if isinstance(node, ast.expr):
            yield from ((operator, node, f"({ast.unparse(after)})") for operator, after in of_expression(node))
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            outcomes = (False,) if isinstance(node, ast.While) else (True, False)
            yield from (("condition", node.test, str(outcome)) for outcome in outcomes)
        if isinstance(node, ast.Return) and not (node.value is None or is_none(node.value)):
            yield "return", node, "return None"
        if isinstance(node, ast.AugAssign) and type(node.op) in SWAPS:
            swapped = ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)
            yield "arithmetic", node, ast.unparse(swapped)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and not is_docstring(node):
            yield "deletion", node, "pass"


def of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left, [op], comparators) if type(op) in SWAPS:
            yield "comparison", ast.Compare(left, [SWAPS[type(op)]()], comparators)  # type: ignore[list-item]
        case ast.BinOp(left, op, right) if type(op) in SWAPS:
            yield "arithmetic", ast.BinOp(left, SWAPS[type(op)](), right)  # type: ignore[arg-type]
        case ast.BoolOp(op, values):
            yield "logic", ast.BoolOp(SWAPS[type(op)](), values)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            yield "negation", operand
        case ast.Constant(bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield from (("constant", ast.Constant(value + change)) for change in (1, -1))
        case ast.Call(ast.Name(name), arguments, keywords) if name in NAMES:
            yield "extreme", ast.Call(ast.Name(NAMES[name]), arguments, keywords)
        case ast.Call(ast.Attribute(value, name), arguments, keywords) if name in NAMES:
            yield "extreme", ast.Call(ast.Attribute(value, NAMES[name]), arguments, keywords)
    match node:
        case ast.Call(function, [ast.Name() as one, ast.Name() as other, *rest], keywords) if one.id != other.id:
            yield "arguments", ast.Call(function, [other, one, *rest], keywords)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that are left alone."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, SKIPPED) and not is_docstring(child):
                yield from walk(child)


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
