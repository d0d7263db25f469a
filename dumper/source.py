"""Functions rewritten so that they tell what they assign: their own source, with a call after every assignment.

``speed = speed + push`` becomes ``speed = speed + push; KEEP((site, speed))``. Everything else stays as it was, down to
the lines. Only the function itself is compiled again, within the classes and functions that it stands in, so that its
names mean what they meant.
"""

import ast
import sys
import types
from functools import lru_cache

KEEP, KEEP_ATTRIBUTE, FROZEN, IMMUTABLE = ("__release_audit_%d__" % number for number in range(4))
"""What a rewritten function finds among its globals: ``KEEP((site, x if x.__class__ in IMMUTABLE else FROZEN(x)))``.

``FROZEN`` makes of a value what nobody can change any more. ``KEEP_ATTRIBUTE(site, owner, name)`` is for attributes.
"""

_RESULT = "__release_audit_result__"
RETURNED = "return"
"""The name of what a function returns: no variable can have it."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rewritten(code):
    """The code of the same function that tells what it assigns; none where its source cannot be read or is another.

    A *site* in it is function, variable, file and line: ``("Pendulum.step", "newth", "/…/pendulum.py", 138)``.
    """
    outermost = _read(code.co_filename).get(code.co_firstlineno)
    if outermost is None:  # made at run time: there is nothing to read
        return None
    for found in within(_compiled(code.co_filename, outermost)):
        if (found.co_name, found.co_firstlineno) == (code.co_name, code.co_firstlineno):
            return found if _fits(found, code) else None
    return None


def within(code):
    """A code object and all those that are made within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in within(constant):
                yield inner


def name_of(code):
    """What a function is called, with the classes and functions it stands in; none where there is no source of it."""
    outermost = _read(code.co_filename).get(code.co_firstlineno)
    return None if outermost is None else _rewriter(code.co_filename, outermost).names[code.co_firstlineno]


def _fits(found, code):
    count = code.co_argcount + code.co_kwonlyargcount
    same = found.co_varnames[:count] == code.co_varnames[:count] and found.co_argcount == code.co_argcount
    return same and found.co_freevars == code.co_freevars


@lru_cache(maxsize=None)
def _tree(path):
    try:
        with open(path, "rb") as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


@lru_cache(maxsize=None)
def _read(path):
    """By the first line of each function: that of the outermost function which it stands in, or is."""
    found = {}
    for function, _ in _outermost(_tree(path), ()):
        first = _first_line(function)
        inner = [node for node in ast.walk(function) if isinstance(node, _FUNCTIONS)]
        found.update((_first_line(node), first) for node in inner)
    return found


def _outermost(node, classes):
    """Functions that stand in no other, with the classes around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child, classes
        else:
            around = classes + (child,) if isinstance(child, ast.ClassDef) else classes
            for found in _outermost(child, around):
                yield found


def _first_line(node):
    return min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])


@lru_cache(maxsize=None)
def _rewriter(path, first):
    """Rewrite an outermost function, in place: nobody reads the tree of it again."""
    function, classes = next(
        (function, classes) for function, classes in _outermost(_tree(path), ()) if _first_line(function) == first
    )
    rewriter = _Rewriter(path, [each.name for each in classes])
    node = rewriter.visit(function)
    for each in reversed(classes):  # what the class is made of does not matter: it is never made
        node = ast.copy_location(_with_body(each, node), each)
    rewriter.node = node
    return rewriter


def _with_body(class_node, node):
    fields = dict(ast.iter_fields(class_node), bases=[], keywords=[], decorator_list=[], body=[node])
    return ast.ClassDef(**fields)


@lru_cache(maxsize=None)
def _compiled(path, first):
    futures = [node for node in _tree(path).body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    module = ast.Module(body=futures + [_rewriter(path, first).node], type_ignores=[])
    return compile(ast.fix_missing_locations(module), path, "exec", dont_inherit=True)


class _Rewriter(ast.NodeTransformer):
    """Adds a call to every place where a variable or an attribute of ``self`` is assigned."""

    def __init__(self, path, around):
        self._path, self._around = path, around
        self._function = ""
        self.names = {}  # of functions, by their first line

    def visit(self, node):
        return node if isinstance(node, _INNER_SCOPES) else super().visit(node)

    def visit_FunctionDef(self, node):
        outer, around = self._function, self._around
        self._function = ".".join(around + [node.name])
        self._around = around + [node.name, "<locals>"]
        self.names[_first_line(node)] = self._function
        body = self._visited(node.body)
        head = body[:1] if ast.get_docstring(node, clean=False) is not None else []
        names = [each.arg for each in getattr(node.args, "posonlyargs", []) + node.args.args + node.args.kwonlyargs]
        node.body = head + self._kept([name for name in names if name != "self"], node) + body[len(head) :]
        self._function, self._around = outer, around
        return node

    def visit_AsyncFunctionDef(self, node):
        return self.visit_FunctionDef(node)

    def visit_ClassDef(self, node):
        around, self._around = self._around, self._around + [node.name]
        node.body = [self.visit(child) if isinstance(child, _FUNCTIONS) else child for child in node.body]
        self._around = around
        return node

    def visit_Assign(self, node):
        return [self.generic_visit(node)] + self._kept(assigned(node.targets), node)

    def visit_AugAssign(self, node):
        return [self.generic_visit(node)] + self._kept(assigned([node.target]), node)

    def visit_AnnAssign(self, node):
        names = [] if node.value is None else assigned([node.target])
        return [self.generic_visit(node)] + self._kept(names, node)

    def visit_For(self, node):
        names = assigned([node.target])
        node = self.generic_visit(node)
        node.body = self._kept(names, node) + node.body
        return node

    def visit_AsyncFor(self, node):
        return self.visit_For(node)

    def visit_With(self, node):
        names = assigned([item.optional_vars for item in node.items if item.optional_vars is not None])
        node = self.generic_visit(node)
        node.body = self._kept(names, node) + node.body
        return node

    def visit_AsyncWith(self, node):
        return self.visit_With(node)

    def visit_NamedExpr(self, node):
        """``(x := y)`` becomes ``[x := y, KEEP((site, x))][0]``: it is an expression, and has to stay one."""
        node = self.generic_visit(node)
        both = ast.List(elts=[node, self._told(node.target.id, node)], ctx=ast.Load())
        return ast.copy_location(_item(both, 0), node)

    def visit_Return(self, node):
        node = self.generic_visit(node)
        if node.value is None:
            return node
        result = ast.Assign(targets=[ast.Name(id=_RESULT, ctx=ast.Store())], value=node.value)
        kept = ast.Expr(value=self._kept_value(_RESULT, RETURNED, node))
        last = ast.Return(value=ast.Name(id=_RESULT, ctx=ast.Load()))
        return [ast.copy_location(each, node) for each in (result, kept, last)]

    def _visited(self, statements):
        found = []
        for statement in statements:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def _kept(self, names, node):
        """Statements that tell of each name."""
        return [ast.copy_location(ast.Expr(value=self._told(name, node)), node) for name in names]

    def _told(self, name, node):
        if not name.startswith("self."):
            return self._kept_value(name, name, node)
        owner = ast.Name(id="self", ctx=ast.Load())
        return _call(KEEP_ATTRIBUTE, self._site(name, node), owner, ast.Constant(value=name[5:]))

    def _kept_value(self, name, called, node):
        """No function of Python is called where nothing has to be frozen: that would take longest."""
        value = ast.Name(id=name, ctx=ast.Load())
        kind = ast.Attribute(value=value, attr="__class__", ctx=ast.Load())
        immutable = ast.Compare(left=kind, ops=[ast.In()], comparators=[ast.Name(id=IMMUTABLE, ctx=ast.Load())])
        kept = ast.IfExp(test=immutable, body=value, orelse=_call(FROZEN, value))
        return _call(KEEP, ast.Tuple(elts=[self._site(called, node), kept], ctx=ast.Load()))

    def _site(self, variable, node):
        return ast.Constant(value=(self._function, variable, self._path, node.lineno))


def _call(function, *arguments):
    return ast.Call(func=ast.Name(id=function, ctx=ast.Load()), args=list(arguments), keywords=[])


def _item(node, number):
    index = ast.Constant(value=number)
    if sys.version_info < (3, 9):
        index = ast.Index(value=index)
    return ast.Subscript(value=node, slice=index, ctx=ast.Load())


def assigned(targets):
    """What is assigned: ``x``, ``self.x``; both also where an entry of it is."""
    found = []
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        if isinstance(target, (ast.Tuple, ast.List)):
            found += assigned(target.elts)
        elif isinstance(target, ast.Name):
            found.append(target.id)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            found.append("self." + target.attr)
    return found
