"""Every table, figure and claim of Attention Is All You Need, made again: `load`, `run` and `table` from Python."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from repro.cli.library import load as load
    from repro.cli.library import run as run
    from repro.cli.library import table as table

__all__ = ["load", "run", "table"]


def __dir__() -> list[str]:
    """The names that a shell completes, though none of them is imported yet."""
    return ["__version__", *__all__]


def __getattr__(name: str) -> Any:
    """Import a function when it is first used; `__version__` is that of the installed package."""
    if name == "__version__":
        from repro.runs.command import release

        return release()
    if name not in __all__:
        raise AttributeError(f"repro has no {name}; it has {', '.join(__all__)}")
    from repro.cli import library

    return getattr(library, name)
