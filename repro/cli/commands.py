"""The command `python -m repro`: each of its commands is a function of its arguments that returns an exit code.

0 is done, 1 failed or differs, 2 not understood. It raises OSError, ValueError or ImportError for what users can mend.
"""

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from repro.runs.command import (
    BAD_INPUT,
    DISTRIBUTION,
    code_of,
    ended,
    experiment_command,
    experiments,
    guess,
    hinted,
    ours,
    release,
    unknown_experiment,
)

COMMANDS = {
    "run": "make a table: train its rows, translate, score, show it",
    "data": "fetch, import or prepare text",
    "runs": "list your runs: row, seed, score, size, when",
    "compare": "how two runs differ: settings, scores, curves, sentences",
    "translate": "translate a text with a finished run",
    "parse": "parse sentences with a finished run of Table 4",
    "score": "perplexity of given translations under a finished run",
    "explain": "what a finished run does with a sentence of yours, step by step, with its gradients",
    "export": "write a finished run for Hugging Face, for CTranslate2 or as safetensors",
    "report": "make tables and verdicts from records, or check them",
    "publish": "add your own results to the published ones",
    "tracking": "bring MLflow up to date with runs, or show published ones there",
    "ui": "open MLflow on the saved view of a table",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the commands; without a word, list them."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0
    if words == ["--version"]:
        from repro.results.provenance import fingerprint

        print(f"{DISTRIBUTION} {release()}, code {fingerprint()[:12]}")  # the code that decides results, as in records
        return 0
    name, *others = words
    if name not in COMMANDS:
        there = f"Commands are {', '.join(COMMANDS)}; {ours('--help')} explains them."
        print(f"error: {name} is not a command{guess(name, COMMANDS)} {there}", file=sys.stderr)
        return BAD_INPUT
    try:
        return _found(name)(others)
    except BrokenPipeError:
        raise
    except (OSError, ValueError, ImportError) as error:  # what a user can mend: in one sentence
        print(f"error: {hinted(error)}", file=sys.stderr)
        return code_of(error)


def _found(name: str) -> Callable[[list[str]], int]:
    """The function of a command; its module is imported only now."""
    module: Any
    match name:
        case "run":
            return run
        case "data":
            from repro.cli import data as module
        case "runs" | "compare":
            from repro.cli import runs as module
        case "explain":
            from repro.cli import explain as module
        case "report" | "publish":
            from repro.cli import report as module
        case "tracking" | "ui":
            from repro.cli import tracking as module
        case _:
            from repro.cli import decode as module
    found: Callable[[list[str]], int] = getattr(module, name)
    return found


def run(argv: Sequence[str]) -> int:
    """Replace this process by the experiment file of that name, given the other words; without a name, list them."""
    name, *others = argv or ["--help"]
    files = experiments()
    if name in ("-h", "--help"):  # none is executed
        docs = {one: ast.get_docstring(ast.parse(file.read_bytes())) or "" for one, file in files.items()}
        listed = _listed({one: doc.partition("\n")[0] for one, doc in docs.items()})
        print(f"usage: {ours('run')} TABLE [--scale smoke] ...\n\n{listed}\n\n{ours('run')} TABLE --help says more.")
        return 0
    if unknown := unknown_experiment(name):
        raise ValueError(unknown)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(files[name]), *others])


def overview() -> str:
    """All commands, each with what it does."""
    return (
        f"usage: {ours()} COMMAND ...\n\n{_listed(COMMANDS)}\n\n"
        f"{ours('COMMAND', '--help')} says more, {ours('--version')} which code this is.\n"
        f"`run TABLE` runs the experiment file of that name, as this does:\n  {experiment_command('table3_A')} --help"
    )


def _listed(said: Mapping[str, str]) -> str:
    width = max(map(len, said), default=0) + 2
    return "\n".join(f"  {name:<{width}}{text}" for name, text in said.items())


def console() -> NoReturn:
    """The entry point of the console command `repro` and of `python -m repro`."""
    sys.exit(ended(main))
