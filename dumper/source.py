"""What the statements of a file of Python assign, line by line."""

import ast
from collections import namedtuple
from functools import lru_cache

Statement = namedtuple("Statement", ("assigned", "first", "last"))
"""What it assigns (``x``, ``self.x``; both also where it sets an entry of it), and the lines that it stands on."""

NO_STATEMENT = Statement((), 0, 0)

_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@lru_cache(maxsize=None)
def read(path):
    """What the functions of a file are called, by their first line, and its statements, by every line of theirs.

    Where there is no source, there is nothing of either.
    """
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return {}, {}
    functions, statements = {}, {}
    _enter(tree, "", functions, statements)
    return functions, statements


def _enter(node, within, functions, statements):
    """From the outside in: a statement that stands within another has its lines for itself."""
    for child in ast.iter_child_nodes(node):
        inside = within
        if isinstance(child, _NAMED):
            inside = _named(child, within, functions)
        elif isinstance(child, ast.stmt):
            _add(child, statements)
        _enter(child, inside, functions, statements)


def _named(node, within, functions):
    """Note what a function is called; return what the names of everything within it begin with."""
    if isinstance(node, ast.ClassDef):
        return "%s%s." % (within, node.name)
    first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
    functions[first] = within + node.name
    return "%s%s.<locals>." % (within, node.name)


def _add(node, statements):
    children = list(ast.iter_child_nodes(node))
    head = [child for child in children if isinstance(child, (ast.expr, ast.withitem))]
    last = node.end_lineno
    if any(isinstance(child, ast.stmt) for child in children):  # with others within it, only its head is one
        last = max([node.lineno] + [child.end_lineno for child in head if isinstance(child, ast.expr)])
    assigned = tuple(name for child in head for name in _targets(child))
    for line in range(node.lineno, last + 1):  # two on one line are taken for one
        assigned = statements.get(line, NO_STATEMENT).assigned + assigned
    statement = Statement(assigned, node.lineno, last)
    statements.update((line, statement) for line in range(node.lineno, last + 1))


def _targets(node):
    if isinstance(node, _INNER_SCOPES):
        return
    if isinstance(getattr(node, "ctx", None), ast.Store):
        while isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield "self." + node.attr
    for child in ast.iter_child_nodes(node):
        for name in _targets(child):
            yield name
