"""The command `python -m repro`: each of its commands has a module, which is imported only when it is used.

Each command is a function of its arguments that returns an exit code: 0 done, 1 failed or differs, 2 not understood.
It raises OSError, ValueError or ImportError for what the user can mend.
"""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from repro.runs.command import BAD_INPUT, DISTRIBUTION, code_of, ended, experiment_command, guess, hinted, ours, release

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
    match name:
        case "run":
            from repro.cli.run import main
        case "data":
            from repro.cli.data import main
        case "report":
            from repro.cli.report import main
        case "publish":
            from repro.cli.publish import main
        case "tracking":
            from repro.cli.tracking import main
        case "ui":
            from repro.cli.ui import main
        case "runs":
            from repro.cli.runs import runs as main
        case "compare":
            from repro.cli.runs import compare as main
        case "explain":
            from repro.cli.explain import main
        case _:
            from repro.cli import decode

            return {"translate": decode.translate, "parse": decode.parse, "score": decode.score}.get(
                name, decode.export
            )
    return main


def overview() -> str:
    """All commands, each with what it does."""
    width = max(map(len, COMMANDS)) + 2
    listed = "\n".join(f"  {name:<{width}}{does}" for name, does in COMMANDS.items())
    return (
        f"usage: {ours()} COMMAND ...\n\n{listed}\n\n"
        f"{ours('COMMAND', '--help')} says more, {ours('--version')} which code this is.\n"
        f"`run TABLE` runs the experiment file of that name, as this does:\n  {experiment_command('table3_A')} --help"
    )


def console() -> NoReturn:
    """The entry point of the console command `repro` and of `python -m repro`."""
    sys.exit(ended(main))
