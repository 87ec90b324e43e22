"""Train a table by its name, with the experiment files that came with this code.

python -m repro run                         the tables, and what each asks
python -m repro run table3_A --scale smoke  what `python experiments/table3_A.py --scale smoke` does in a checkout
"""

import ast
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from repro.results.places import experiment_files
from repro.runs.command import BAD_INPUT, guess, ours


def main(argv: Sequence[str] | None = None) -> int:
    """Replace this process by the experiment file of that name, given the other words; without a name, list them."""
    name, *others = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    files = experiments()
    if name in ("-h", "--help"):
        print(listing(files))
        return 0
    if unknown := unknown_experiment(name):
        print(f"error: {unknown}", file=sys.stderr)
        return BAD_INPUT
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(files[name]), *others])


def experiments() -> dict[str, Path]:
    """The experiment files that came with this code, by name."""
    return {file.stem: file for file in sorted(experiment_files().glob("*.py"))}


def unknown_experiment(name: str) -> str | None:
    """The message for a name that no experiment has; None for one that is there."""
    files = experiments()
    if name in files:
        return None
    return f"{name} is not an experiment{guess(name, files)} There are {', '.join(files) or 'none'}."


def listing(files: Mapping[str, Path]) -> str:
    """Each file by its name, with the first line of its docstring; no file is executed."""
    width = max(map(len, files), default=0) + 2
    docs = {name: ast.get_docstring(ast.parse(file.read_bytes())) or "" for name, file in files.items()}
    lines = [f"  {name:<{width}}{doc.partition(chr(10))[0]}" for name, doc in docs.items()]
    head, end = f"usage: {ours('run')} TABLE [--scale smoke] ...", f"{ours('run')} TABLE --help says more."
    return "\n".join([head, "", *lines, "", end])
