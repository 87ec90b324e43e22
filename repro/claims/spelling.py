"""What decides, spelled out so that it can be hashed: values as they are, functions by their syntax.

Words decide nothing: neither comments and docstrings, nor the text that a function gives as its reason. What a function
asks of others of this package is spelled as well: functions by their syntax, numbers by their value.
"""

import ast
import functools
import inspect
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType
from typing import Any

PACKAGE = __name__.partition(".")[0]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # syntax that has a docstring
VERDICT = "Checked"  # what a computation makes of a statement and its reason


def spelled(value: Any, *, without: Container[str] = ()) -> Any:
    """A value as JSON has it; of a dataclass each field and each method that is not among `without`, by name."""
    if is_dataclass(value) and not isinstance(value, type):
        methods = {name: of for name, of in vars(type(value)).items() if isinstance(of, FunctionType)}
        kept = {field.name: getattr(value, field.name) for field in fields(value)}
        kept |= {name: of for name, of in methods.items() if not name.startswith("__")}  # those a dataclass comes with
        return {name: spelled(of, without=without) for name, of in sorted(kept.items()) if name not in without}
    if isinstance(value, Mapping):
        return [[spelled(key), spelled(of, without=without)] for key, of in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [spelled(item, without=without) for item in value]
    if isinstance(value, FunctionType):
        return function(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"expected what can be spelled out, got {value!r}. Teach `spelled` what it consists of.")


def function(of: FunctionType) -> dict[str, Any]:
    """A function and what it asks, by name: the syntax of ours, the value of what is neither function nor type."""
    found: dict[str, Any] = {}
    waiting = [of]
    while waiting:
        one = waiting.pop()
        name = f"{one.__module__}.{one.__qualname__}"
        if name in found:
            continue
        found[name], asked_names = _read(one)
        for asked, value in _asked(asked_names, one.__globals__):
            if isinstance(value, FunctionType):
                waiting += [value] * value.__module__.startswith(f"{PACKAGE}.")
            else:
                found[asked] = spelled(value)
    return dict(sorted(found.items()))


@functools.cache
def _read(one: FunctionType) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The syntax of a function, and the names it may have from elsewhere, each with the field that it asks of it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    parts = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    annotations = {id(part) for node in _annotations(tree) for part in ast.walk(node)}
    local = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    local |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    asked = [
        (node.id, parts.get(id(node), "")) for node in names if node.id not in local and id(node) not in annotations
    ]
    return syntax(tree), tuple(dict.fromkeys(asked))


def _asked(names: Iterable[tuple[str, str]], known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What those names are that are neither built in nor modules nor types; of `BASE.steps` that field alone."""
    for name, part in names:
        value = known.get(name, ast)
        if isinstance(value, ModuleType | type):
            continue
        if part and is_dataclass(value):
            yield f"{name}.{part}", getattr(value, part)
        else:
            yield name, value


def _annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns


def syntax(node: Any) -> str:
    """The syntax without words: neither docstrings, annotations and f-strings, nor the reason of a verdict.

    Empty fields are left out too: they come and go between versions of Python.
    """
    if isinstance(node, list):
        return f"[{','.join(map(syntax, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):
        return "words"
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == VERDICT:
        node.args = node.args[:1]
    left_out = ("annotation", "returns", "type_comment")
    shown = (
        f"{name}={syntax(value)}"
        for name, value in ast.iter_fields(node)
        if name not in left_out and value not in (None, [])
    )
    return f"{type(node).__name__}({','.join(shown)})"
