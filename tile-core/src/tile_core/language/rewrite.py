"""Python source to builder code: the AST of a kernel function, with control flow and names routed through a builder.

Names of the builder in generated code start with ``__tile``, which no user name does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeGuard

from ..errors import KernelError
from ..span import Span

BUILDER = "__tile__"

UNSUPPORTED: dict[type[ast.AST], str] = {
    ast.Try: "try",
    ast.Raise: "raise",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.ClassDef: "class",
    ast.AsyncFunctionDef: "async def",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.Match: "match",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.NamedExpr: ":=",
}

OPERATOR: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.And: "and",
    ast.Or: "or",
}


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that statements assign, in order, without those of nested functions and comprehensions."""
    found: dict[str, None] = {}

    def visit(n: ast.AST) -> None:
        if isinstance(
            n, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            if isinstance(n, ast.FunctionDef):
                found.setdefault(n.name)
            return
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.setdefault(n.id)
        for child in ast.iter_child_nodes(n):
            visit(child)

    for n in nodes:
        visit(n)
    return list(found)


class Placed(Protocol):
    """A node that stands somewhere in the source."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


def is_placed(n: ast.AST) -> TypeGuard[Placed]:
    return hasattr(n, "lineno")


class Rewriter(ast.NodeTransformer):
    """One function's rewriting. ``spans`` collects the places that generated calls name by number."""

    def __init__(self, file: str, function: str) -> None:
        self.file = file
        self.name = function
        self.spans: list[Span] = []
        self.count = 0

    # Building blocks.

    def place(self, n: Placed) -> Span:
        return Span(
            self.file,
            n.lineno,
            n.col_offset + 1,
            n.end_lineno or n.lineno,
            (n.end_col_offset or 0) + 1,
            self.name,
        )

    def number(self, n: Placed) -> ast.Constant:
        self.spans.append(self.place(n))
        return ast.Constant(len(self.spans) - 1)

    def do(self, method: str, *arguments: ast.expr, at: ast.AST | None = None) -> ast.Call:
        call = ast.Call(ast.Attribute(ast.Name(BUILDER, ast.Load()), method, ast.Load()), list(arguments), [])
        return ast.copy_location(call, at) if at is not None else call

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"__tile_{what}{self.count}"

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            new = self.visit(s)
            out += new if isinstance(new, list) else [new] if new is not None else []
        return out

    @staticmethod
    def values(names: Sequence[str]) -> ast.Tuple:
        return ast.Tuple([ast.Name(n, ast.Load()) for n in names], ast.Load())

    @staticmethod
    def texts(names: Sequence[str]) -> ast.Tuple:
        return ast.Tuple([ast.Constant(n) for n in names], ast.Load())

    @staticmethod
    def into(names: Sequence[str], value: ast.expr) -> ast.Assign:
        """``names = value``; one name is assigned the value itself."""
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        return ast.Assign(targets if len(names) == 1 else [ast.Tuple(targets, ast.Store())], value)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        what = UNSUPPORTED.get(type(node))
        if what is not None:
            raise KernelError(
                f"`{what}` is not possible in a kernel", self.place(node) if is_placed(node) else None
            )
        return super().generic_visit(node)

    # Functions.

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        arguments = node.args
        own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        doc = node.body[1:] if ast.get_docstring(node) is not None else node.body
        names = [n for n in assigned(node.body) if n not in own]
        head: list[ast.stmt] = []
        if names:
            head = [self.into(names, self.do("unbound", *(ast.Constant(n) for n in names)))]
        node.body = [*head, *self.block(doc)] or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function defined in a kernel is inlined where it is called, as a macro is."""
        given = [self.visit(d) for d in node.args.defaults]
        given_by_name = [d and self.visit(d) for d in node.args.kw_defaults]
        strip_annotations(node)
        node.args.defaults, node.args.kw_defaults = given, given_by_name
        node.decorator_list = [ast.Attribute(ast.Name(BUILDER, ast.Load()), "inlined", ast.Load())]
        return self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.body = self.visit(node.body)
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return ast.copy_location(ast.Return(self.do("return_", self.number(node), value, at=node)), node)

    # Names.

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        value = self.hint_each(node, value)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return self.assign_name(node, node.targets[0].id, value, isinstance(node.value, ast.Call))
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            return self.assign_to(node, node.targets[0], value)
        temporary = self.fresh("value")
        value = self.do("settled", self.number(node.value), value, at=node.value)
        out: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(temporary, ast.Store())], value), node)]
        for target in node.targets:
            out += self.assign_to(node, target, ast.Name(temporary, ast.Load()))
        return out

    def assign_name(self, node: ast.stmt, name: str, value: ast.expr, hint: bool) -> ast.stmt:
        if hint:
            value = self.hinted(value, name)
        new = self.do(
            "assign", self.number(node), ast.Constant(name), value, ast.Name(name, ast.Load()), at=node
        )
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], new), node)

    def hinted(self, value: ast.expr, *names: str) -> ast.expr:
        """``value`` evaluated when the builder knows what names it goes to."""
        pair = ast.Tuple([self.do("name", *map(ast.Constant, names)), value], ast.Load())
        return ast.Subscript(pair, ast.Constant(1), ast.Load())

    def hint_each(self, node: ast.Assign, value: ast.expr) -> ast.expr:
        """``a, b = f(), g()`` and ``a, b = (f() for ...)``: each call knows its own name."""
        match node.targets, node.value, value:
            case [ast.Tuple(elts=names)], ast.Tuple(elts=written), ast.Tuple(elts=values) if len(
                names
            ) == len(values):
                for n, (name, old) in enumerate(zip(names, written, strict=True)):
                    if isinstance(name, ast.Name) and isinstance(old, ast.Call):
                        values[n] = self.hinted(values[n], name.id)
                return value
            case [ast.Tuple(elts=names)], ast.GeneratorExp(elt=ast.Call()) | ast.ListComp(elt=ast.Call()), _:
                known = [n.id for n in names if isinstance(n, ast.Name)]
                return self.hinted(value, *known) if len(known) == len(names) else value
            case _:
                return value

    def assign_to(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name():
                return [self.assign_name(node, target.id, value, False)]
            case ast.Subscript():
                place, index = self.visit(target.value), self.index(target.slice)
                call = self.do("store", self.number(target), place, index, value, at=node)
                return [ast.copy_location(ast.Expr(call), node)]
            case ast.Tuple() | ast.List() if not any(isinstance(e, ast.Starred) for e in target.elts):
                names = [self.fresh("item") for _ in target.elts]
                out: list[ast.stmt] = [ast.copy_location(self.unpacked(names, value), node)]
                for name, inner in zip(names, target.elts, strict=True):
                    out += self.assign_to(node, inner, ast.Name(name, ast.Load()))
                return out
            case _:
                return [ast.copy_location(ast.Assign([target], value), node)]

    @staticmethod
    def unpacked(names: Sequence[str], value: ast.expr) -> ast.Assign:
        return ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if not isinstance(node.target, ast.Name):
            raise KernelError("only a plain name is annotated in a kernel", self.place(node))
        name = node.target.id
        annotation = self.visit(unquoted(node.annotation))
        nothing = ast.Attribute(ast.Name(BUILDER, ast.Load()), "NOTHING", ast.Load())
        value = nothing if node.value is None else self.visit(node.value)
        old = ast.Name(name, ast.Load())
        new = self.do("annotate", self.number(node), ast.Constant(name), annotation, value, old, at=node)
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], new), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        op = ast.Constant(OPERATOR[type(node.op)])
        value = self.visit(node.value)
        match node.target:
            case ast.Name():
                new = ast.copy_location(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, value), node)
                return self.assign_name(node, node.target.id, new, False)
            case ast.Subscript():
                place, index = self.visit(node.target.value), self.index(node.target.slice)
                call = self.do("augment", self.number(node), op, place, index, value, at=node)
                return ast.copy_location(ast.Expr(call), node)
            case _:
                node.value = value
                return node

    # Control.

    def visit_If(self, node: ast.If) -> Any:
        test, saved = self.fresh("test"), self.fresh("saved")
        names = assigned([*node.body, *node.orelse])
        chosen = ast.Name(test, ast.Load())
        out: list[ast.stmt] = [
            ast.Assign(
                [ast.Name(test, ast.Store())], self.do("test", self.number(node.test), self.visit(node.test))
            )
        ]
        if names:
            out.append(ast.Assign([ast.Name(saved, ast.Store())], self.values(names)))
        out.append(self.branch(chosen, False, [*self.block(node.body)], ("then", "end_then")))
        other = self.block(node.orelse)
        if names:
            restore = self.do("restored", chosen, ast.Name(saved, ast.Load()), self.values(names))
            other.insert(0, self.unpacked(names, restore))
        out.append(self.branch(chosen, True, other, ("otherwise", "end_if")))
        if names:
            dynamic = ast.Compare(chosen, [ast.Is()], [ast.Constant(None)])
            arguments = (
                self.number(node),
                dynamic,
                self.texts(names),
                ast.Name(saved, ast.Load()),
                self.values(names),
            )
            out.append(self.into(names, self.do("leaving", *arguments)))
        return [ast.copy_location(s, node) for s in out]

    def branch(self, chosen: ast.expr, value: bool, body: list[ast.stmt], around: tuple[str, str]) -> ast.If:
        first, last = (ast.Expr(self.do(name, chosen)) for name in around)
        return ast.If(ast.Compare(chosen, [ast.IsNot()], [ast.Constant(value)]), [first, *body, last], [])

    def visit_For(self, node: ast.For) -> Any:
        if node.orelse:
            raise KernelError("`for ... else` is not possible in a kernel", self.place(node))
        iterable = node.iter
        if (
            isinstance(iterable, ast.Call)
            and isinstance(iterable.func, ast.Name)
            and iterable.func.id == "range"
        ):
            arguments = [self.visit(a) for a in iterable.args]
            source: ast.expr = self.do("range", self.number(iterable), *arguments, at=iterable)
        else:
            source = self.visit(iterable)
        # a loop is shown by its head, not by its whole body
        loop = self.do("loop", self.number(iterable), source, self.targets(node.target), at=iterable)
        return self.repeated(node, node.body, lambda body: ast.For(node.target, loop, body, []))

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.iter = self.do("listed", self.number(node.iter), self.visit(node.iter), at=node.iter)
        node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def visit_While(self, node: ast.While) -> Any:
        if node.orelse:
            raise KernelError("`while ... else` is not possible in a kernel", self.place(node))
        literal = isinstance(node.test, ast.Constant) and bool(node.test.value)
        condition = ast.Lambda(arguments_of(()), self.visit(node.test))
        loop = self.do("while_", self.number(node.test), condition, ast.Constant(literal), at=node.test)
        target = ast.Name(self.fresh("round"), ast.Store())
        return self.repeated(node, node.body, lambda body: ast.For(target, loop, body, []))

    def visit_With(self, node: ast.With) -> Any:
        items = [ast.withitem(self.manager(i), i.optional_vars) for i in node.items]
        return self.repeated(node, node.body, lambda body: ast.With(items, body))

    def manager(self, item: ast.withitem) -> ast.expr:
        k = self.number(item.context_expr)
        return self.do(
            "with_", k, self.visit(item.context_expr), self.targets(item.optional_vars), at=item.context_expr
        )

    @staticmethod
    def targets(node: ast.expr | None) -> ast.expr:
        """Names of the targets of a loop or ``with``: a text for one, a tuple of texts for several."""
        match node:
            case ast.Name():
                return ast.Constant(node.id)
            case ast.Tuple() | ast.List():
                names = [e.id if isinstance(e, ast.Name) else "v" for e in node.elts]
                return ast.Tuple([ast.Constant(n) for n in names], ast.Load())
            case _:
                return ast.Constant(None)

    def repeated(
        self, node: ast.stmt, body: Sequence[ast.stmt], around: Callable[[list[ast.stmt]], ast.stmt]
    ) -> list[ast.stmt]:
        """A body that the device may run many times: names that it assigns are checked on entry and after it."""
        names = assigned(body)
        inner = self.block(body)
        if not names:
            return [ast.copy_location(around(inner or [ast.Pass()]), node)]
        saved = self.fresh("saved")
        k = self.number(body[0])
        enter = self.into(names, self.do("entering", k, self.texts(names), self.values(names)))
        dynamic = ast.Attribute(ast.Name(BUILDER, ast.Load()), "dynamic", ast.Load())
        arguments = (k, dynamic, self.texts(names), ast.Name(saved, ast.Load()), self.values(names))
        out: list[ast.stmt] = [
            ast.Assign([ast.Name(saved, ast.Store())], self.values(names)),
            around([enter, *inner]),
            self.into(names, self.do("leaving", *arguments)),
        ]
        return [ast.copy_location(s, node) for s in out]

    def jump(self, node: ast.Break | ast.Continue, kind: str) -> ast.If:
        test = self.do("break_", self.number(node), ast.Constant(kind), at=node)
        return ast.copy_location(ast.If(test, [node], []), node)

    def visit_Break(self, node: ast.Break) -> Any:
        return self.jump(node, "break")

    def visit_Continue(self, node: ast.Continue) -> Any:
        return self.jump(node, "continue")

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = ast.Constant(None) if node.msg is None else self.visit(node.msg)
        call = self.do("assert_", self.number(node.test), self.visit(node.test), message, at=node)
        return ast.copy_location(ast.Expr(call), node)

    # Expressions.

    def index(self, node: ast.expr) -> ast.expr:
        """An index; a slice becomes a call of ``slice``, so that it can be passed on."""
        match node:
            case ast.Slice():
                parts = [
                    ast.Constant(None) if p is None else self.visit(p)
                    for p in (node.lower, node.upper, node.step)
                ]
                return ast.copy_location(self.do("slice", *parts), node)
            case ast.Tuple():
                return ast.copy_location(ast.Tuple([self.index(e) for e in node.elts], ast.Load()), node)
            case _:
                return self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.do("getitem", self.number(node), self.visit(node.value), self.index(node.slice), at=node)

    def visit_Call(self, node: ast.Call) -> Any:
        arguments = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        call = self.do("call", self.number(node), self.visit(node.func), *arguments, at=node)
        call.keywords = keywords
        return call

    def visit_Compare(self, node: ast.Compare) -> Any:
        ops = ast.Tuple([ast.Constant(OPERATOR[type(op)]) for op in node.ops], ast.Load())
        values = ast.Tuple([self.visit(v) for v in (node.left, *node.comparators)], ast.Load())
        return self.do("compare", ops, values, at=node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        values: list[ast.expr] = [ast.Lambda(arguments_of(()), self.visit(v)) for v in node.values]
        return self.do(
            "logical", ast.Constant(OPERATOR[type(node.op)]), ast.Tuple(values, ast.Load()), at=node
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self.do("not_", operand, at=node)
        node.operand = operand
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        then, other = (ast.Lambda(arguments_of(()), self.visit(v)) for v in (node.body, node.orelse))
        return self.do("choose", self.number(node), self.visit(node.test), then, other, at=node)


def strip_annotations(function: ast.FunctionDef) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    arguments = function.args
    for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if a.annotation is not None:
            found[a.arg] = unquoted(a.annotation)
            a.annotation = None
    # defaults were evaluated when the user's function was made; they are set on the result
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
    function.returns = None
    return found


def unquoted(annotation: ast.expr) -> ast.expr:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        inner = ast.parse(annotation.value, mode="eval").body
        for n in ast.walk(inner):
            ast.copy_location(n, annotation)
        return inner
    return annotation


def arguments_of(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
