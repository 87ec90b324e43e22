"""Commands that are tested inside this process keep to one folder, and answer signals their way; then it does again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.runs.command import STOPPING


def places(folder: Path, *more: str) -> list[str]:
    """The options that keep an experiment inside `folder`, and others."""
    own = [f"--{name}-dir={folder / name}" for name in ("results", "runs", "cache")]
    return [*own, f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}", *more]


@contextmanager
def own_signals() -> Iterator[None]:
    """Hear every signal, and put every handler back that a command may have set."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    hear_all()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hear_all() -> None:
    """Undo what a shell does to its background jobs, and `nohup` to all: some signals are ignored from the start."""
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
