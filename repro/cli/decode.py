"""Put a finished run to use: translate or parse with it, score with it, hand it to others."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from repro.corpora.parallel_text import Parallel, read_lines
from repro.data.treebank import bracketed, tokens_of
from repro.decoding.search import SEARCHES, Search
from repro.results.places import run_folder, run_names
from repro.results.record import Record
from repro.runs.command import Parser, ours
from repro.runs.export import FORMATS, export_run
from repro.runs.load import check_parses, check_translates, finished, open_run, outputs, score_sentences, trees
from repro.runs.options import add_options

STDIN: dict[str, Any] = {"type": Path, "nargs": "?", "default": Path("/dev/stdin")}


def translate(argv: Sequence[str] | None = None) -> int:
    """Translate each line of a text with a finished run, to standard output."""
    parser = run_parser("translate", translate.__doc__, backend="what translates")
    parser.add_argument("source", help="text, plain or gzip (default: standard input)", **STDIN)
    known = "; ".join(f"{name}: {one}" for name, one in SEARCHES.items())
    parser.add_argument("--search", choices=SEARCHES, default="paper", help=f"{known} (default: paper)")
    parser.add_argument("--beam", type=int, help="hypotheses kept for each sentence (default: the search's)")
    parser.add_argument("--alpha", type=float, help="exponent of the length penalty (default: the search's)")
    options, folder, run = asked(parser, argv)
    given = {name: value for name in ("beam", "alpha") if (value := getattr(options, name)) is not None}
    search = replace(SEARCHES[options.search], **given)
    check_translates(run)
    lines = list(read_lines(options.source))  # bad lines are reported before the model is built
    warn_of_unseen(run, lines)
    trained = open_run(folder)
    for _, text in outputs(trained, lines, search, backend=options.backend, bf16=options.precision == "bf16"):
        sys.stdout.buffer.write(text.encode() + b"\n")
    return 0


def parse(argv: Sequence[str] | None = None) -> int:
    """Parse each sentence with a finished run of Table 4: a tree in brackets on each line of standard output."""
    parser = run_parser("parse", parse.__doc__, backend="what parses")
    parser.add_argument("source", help="sentences, words split as the treebank splits them (default: stdin)", **STDIN)
    options, folder, run = asked(parser, argv)
    check_parses(run)
    sentences = [tokens_of(line) for line in read_lines(options.source)]
    trained, search, bf16 = open_run(folder), Search.of(run.settings), options.precision == "bf16"
    n_mended = 0
    for found in trees(trained, sentences, search, backend=options.backend, bf16=bf16):
        n_mended += bool(found and found.kinds)
        sys.stdout.buffer.write((bracketed(found.tree, "TOP") if found else "").encode() + b"\n")
    print(f"{n_mended:,} of {sum(map(bool, sentences)):,} outputs were not trees, and were mended", file=sys.stderr)
    return 0


def score(argv: Sequence[str] | None = None) -> int:
    """Perplexity and mean loss of given translations under a finished run."""
    parser = run_parser("score", score.__doc__)
    parser.add_argument("source", type=Path, help="sentences, one per line")
    parser.add_argument("target", type=Path, help="their translations, line by line")
    options, folder, _ = asked(parser, argv)
    sources, targets = zip(*Parallel(options.source, options.target).pairs(), strict=True)
    found = score_sentences(open_run(folder), sources, targets)
    n = f"{len(sources):,} pairs, {found.n_tokens:,} target tokens"
    print(f"{n}: nll {found.nll:.6f} nats a token, ppl {found.ppl:.4f}")
    return 0


def export(argv: Sequence[str] | None = None) -> int:
    """Write the model of a finished run for others to open, with its tokenizer, its record and a model card."""
    parser = run_parser("export", export.__doc__)
    parser.add_argument("--format", choices=FORMATS, required=True, help="format to write")
    parser.add_argument("folder", type=Path, help="new, empty, or an earlier export of the same run and format")
    options, folder, run = asked(parser, argv)
    export_run(run, lambda: open_run(folder), options.format, options.folder)
    print(f"{options.folder}: run {run.run} for {options.format}; README.md there says how to open it")
    return 0


# What these commands share ---------------------------------------------------------------------------------


def run_parser(name: str, does: str | None, backend: str = "") -> Parser:
    """A parser for a finished run and, where a `backend` computes outputs, for that."""
    parser = Parser(prog=ours(name), description=does)
    parser.add_argument("run", help=f"a finished run: {run_names()}, its folder, its id or the beginning of it")
    parser.add_argument("--model", metavar="RUN", help="the run, as an option instead of the first argument")
    add_options(parser, "runs_dir", runs_dir="where runs are kept")
    if backend:
        add_options(parser, "backend", "precision", backend=backend, precision="of matrix products (default: fp32)")
    return parser


def asked(parser: Parser, argv: Sequence[str] | None) -> tuple[argparse.Namespace, Path, Record]:
    """The options of such a command, the folder and the record of its run, which is named before slow work begins.

    `--model RUN` is RUN in the first place.
    """
    named = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    named.add_argument("--model", nargs="?")  # without a name, the parser says that there is no run
    found, words = named.parse_known_args(argv)
    options = parser.parse_intermixed_args(words if found.model is None else [found.model, *words])
    folder = run_folder(options.run, options.runs_dir)
    run = finished(folder)
    told = f"{folder}: {run.table}, {run.row}, seed {run.seed}, scale {run.scale}, {run.pair}"
    print(told, file=sys.stderr, flush=True)
    return options, folder, run


def warn_of_unseen(run: Record, lines: Sequence[str]) -> None:
    """Warn which share of the words a run on generated text never saw: what it makes of them means nothing."""
    if run.corpus["name"] != "grammar":
        return
    from repro.corpora.grammar.generate import sentences

    held_out, column = run.corpus["n_test"] + run.corpus["n_dev"], ("en", "de", "fr").index(run.pair.split("-")[0])
    trained = islice(sentences(0), held_out, held_out + run.corpus["n_train"])
    known, words = {*_words(triple[column] for triple in trained)}, _words(lines)
    if unseen := [word for word in words if word not in known]:
        said = (
            f"{len(unseen):,} of {len(words):,} words ({len(unseen) / len(words):.0%}) never stood in the generated "
            f"text that this run learned from, such as {unseen[0]!r}: what it makes of them means nothing.\n"
            f"A sentence of its kind: {next(sentences(0))[column]}"
        )
        print(said, file=sys.stderr, flush=True)


def _words(lines: Iterable[str]) -> list[str]:
    """Words without the marks around them, in small letters: a sentence begins with a capital."""
    return [word for line in lines for one in line.split() if (word := one.strip(".,?!").lower())]
