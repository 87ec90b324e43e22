"""Describe a row's system, a class or a `functools.partial` of one: as text, and by the files that it comes from.

None is the Transformer, whose text is empty, so ids, records and tables of rows without a system do not mention it.
"""

import inspect
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ADVICE = "Give the row's system as a class at the top of a module, or as functools.partial of one."


def system_text(system: Any) -> str:
    """The qualified name of a system with its arguments, "rivals.Recurrent(width=96)"; empty for None.

    Raises ValueError for anything without such a name: a lambda, a local class or function, an instance, a function
    instead of a class, arguments other than classes, functions and numbers.
    """
    if system is None:
        return ""
    called = system
    while isinstance(called, partial):
        called = called.func
    if not inspect.isclass(called):
        raise ValueError(f"A system: expected a class, got {called!r}. {ADVICE}")
    return _value(system)


def modules(system: Any) -> dict[str, Path]:
    """The modules of the system and of its arguments, with the folders below which they lie.

    Raises ValueError for classes and functions that were typed into a notebook or a shell.
    """
    found = {}
    for part in named_parts(system):
        module = sys.modules.get(part.__module__)
        file = getattr(module, "__file__", None)
        if part.__module__ == "__main__" and not (file and Path(file).is_file()):
            raise ValueError(f"A system: {part.__qualname__} was typed in. Put it into a file and import it.")
        if file is not None:
            name = _module(part)
            found[name] = Path(file).resolve().parents[name.count(".") + (Path(file).name == "__init__.py")]
    return found


def named_parts(value: Any) -> Iterator[Any]:
    """The classes and functions that a system is made of."""
    if isinstance(value, partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from named_parts(part)
    elif inspect.isclass(value) or inspect.isfunction(value):
        yield value


def _value(value: Any) -> str:
    if isinstance(value, partial):
        named = [f"{name}={_value(value.keywords[name])}" for name in sorted(value.keywords)]
        return f"{_value(value.func)}({', '.join([*map(_value, value.args), *named])})"
    if inspect.isclass(value) or inspect.isfunction(value):
        if "<" in value.__qualname__:
            raise ValueError(f"A system: expected something with a name of its own, got {value.__qualname__}. {ADVICE}")
        return f"{_module(value)}.{value.__qualname__}"
    if value is None or isinstance(value, int | float):
        return repr(value)
    raise ValueError(f"A system: expected classes, functions and numbers as its arguments, got {value!r}. {ADVICE}")


def _module(part: Any) -> str:
    """The name of the part's module; if it is the running experiment file, the name of that file."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    name: str = part.__module__
    return Path(file).stem if name == "__main__" and file else name
