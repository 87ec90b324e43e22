"""Your runs, the newest first; and how two of them differ: settings, scores, curves, sentences."""

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from repro.render.text import aligned
from repro.results.details import over_sentences
from repro.results.places import Ended, advice, ended_runs, run_folder, run_names
from repro.results.record import Record
from repro.results.sentences import has_sentences, ngram_counts
from repro.runs.command import Parser, ours
from repro.runs.load import finished
from repro.runs.options import add_options

HEAD = ("run", "table", "row", "seed", "dev", "size", "ended")
LOOKS = 6  # points of two curves that are shown, at least; at most twice as many
SHOWN = 3  # sentences
NOT_TOLD = ("machine", "claim")  # settings that change nothing
MINUS = "\N{MINUS SIGN}"


def runs(argv: Sequence[str] | None = None) -> int:
    """List the runs that ended, the newest first, by the text that they were trained on."""
    parser = Parser(prog=ours("runs"), description=runs.__doc__)
    add_options(parser, "runs_dir", runs_dir="where runs are kept")
    folder: Path = parser.parse_args(argv).runs_dir
    there = list(ended_runs(folder))
    begun = len(list(folder.glob("*/run.json"))) - len(there)
    if not there:
        raise ValueError(f"{folder}: expected runs that ended, found none. {advice()}")
    for world, of in itertools.groupby(sorted(there, key=_world), key=_world):
        print(f"{world}:", *_grid([HEAD, *map(_line, of)], (0, 1, 2, 6)), "", sep="\n")
    if begun > 0:
        print(f"{begun} more have not ended. Type the command that started them again to resume them.")
    others = "or the beginning of an id as RUN. So do the commands compare, export and score."
    print(f"{ours('translate', 'RUN')}\ntakes {run_names()} {others}")
    return 0


def _world(one: Ended) -> str:
    run = one.record
    score = run.about["scores"][0].upper()
    return f"{run.scale}: {run.corpus['name']} {run.pair}, {run.corpus['n_train']:,} pairs, {score} of dev"


def _line(one: Ended) -> tuple[str, ...]:
    run = one.record
    score = "diverged" if one.score is None else f"{one.score:.1f}"
    when = f"{datetime.fromtimestamp(one.ended):%Y-%m-%d %H:%M}"
    return run.run[:8], run.table, run.row, str(run.seed), score, f"{run.params['here'] / 1e6:.2f} M", when


def _grid(lines: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """The lines with their columns below each other; those of these numbers stand to the left."""
    columns = list(zip(*lines, strict=True))
    return [f"  {'  '.join(line)}".rstrip() for line in aligned(columns, [n in left for n in range(len(columns))])]


# Two runs --------------------------------------------------------------------------------------------------


def compare(argv: Sequence[str] | None = None) -> int:
    """Say how two finished runs differ: settings, scores, curves, sentences of dev."""
    parser = Parser(prog=ours("compare"), description=compare.__doc__)
    for name in ("A", "B"):
        parser.add_argument(name, help=f"a finished run: {run_names()}, its folder, its id or the beginning of it")
    add_options(parser, "runs_dir", "cache_dir", runs_dir="where runs are kept")
    options = parser.parse_args(argv)
    folders = [run_folder(typed, options.runs_dir) for typed in (options.A, options.B)]
    one, other = map(finished, folders)
    if one.run == other.run:
        raise ValueError(f"expected two runs, got {one.run} twice. {ours('runs')} lists what there is.")
    for letter, run in zip("AB", (one, other), strict=True):
        print(f"{letter}  {run.run}  {run.table}, {run.row}, seed {run.seed}, scale {run.scale}, {run.pair}")
    print("\nSettings that differ:", *_grid([("", "A", "B"), *_settings(one, other)]), sep="\n")
    print("\nScores:", *_grid([("", "A", "B", f"B {MINUS} A"), *_scores(one, other)]), sep="\n")
    if curves := _curves(one, other):
        print("\nLoss on dev, nats a token, unsmoothed, after so many updates:", *_grid(curves), sep="\n")
    print(*_sentences(folders, one, other, options.cache_dir), sep="\n")
    return 0


def _settings(*runs: Record) -> Iterator[tuple[str, ...]]:
    """All that was set and differs."""
    flat: list[dict[str, Any]] = [
        {"system": run.system or "Transformer", "seed": run.seed, "scale": run.scale, "pair": run.pair}
        | {"corpus": f"{run.corpus['name']} {run.corpus['sha256'][:8]}", "pieces": run.tokenizer["size"], **run.hyper}
        | {name: value for name, value in run.settings.items() if name not in NOT_TOLD}
        | {"code": run.stamp["fingerprint"][:8]}
        for run in runs
    ]
    for name in {**flat[0], **flat[1]}:
        ours, theirs = (of.get(name) for of in flat)
        if ours != theirs:
            yield name, *("none" if one in (None, "") else str(one) for one in (ours, theirs))


def _scores(ours: Record, theirs: Record) -> Iterator[tuple[str, ...]]:
    """Each number of both, and by how much the second has more."""
    for split in ("dev", "test"):
        for name in dict.fromkeys(("ppl", ours.about["scores"][0], theirs.about["scores"][0])):
            digits = 2 if name == "ppl" else 1
            yield _numbers(f"{split} {name.upper()}", digits, ours.score(split, name), theirs.score(split, name))
    yield _numbers("parameters (M)", 2, ours.params["here"] / 1e6, theirs.params["here"] / 1e6)
    yield _numbers("training (s)", 0, ours.cost["train_seconds"], theirs.cost["train_seconds"])


def _curves(*runs: Record) -> list[tuple[str, ...]]:
    """The losses after steps at which both runs have read dev: some of them, evenly spaced, and the last."""
    curves = [dict(zip(run.curves["dev"]["step"], run.curves["dev"]["nll"], strict=True)) for run in runs]
    both = sorted(curves[0].keys() & curves[1].keys())
    steps = both[:: -max(1, len(both) // LOOKS)][::-1]
    return [_numbers(f"{step:,}", 3, *(curve[step] for curve in curves)) for step in steps]


def _numbers(name: str, digits: int, ours: float | None, theirs: float | None) -> tuple[str, ...]:
    shown = ("none" if one is None else f"{one:.{digits}f}" for one in (ours, theirs))
    return name, *shown, "" if ours is None or theirs is None else _signed(theirs - ours, digits)


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", MINUS)


def _sentences(folders: Sequence[Path], one: Record, other: Record, cache: Path) -> Iterator[str]:
    """BLEU over the sentences of dev, and those where it differs most; nothing of it unless both are of one text."""
    from repro.runs.outputs import at_hand
    from repro.web.sentences import sentence_bleu

    files = [folder / "dev.hyp" for folder in folders]
    alike = (one.corpus["sha256"], one.pair) == (other.corpus["sha256"], other.pair)
    kept = has_sentences(one) and has_sentences(other) and all(file.exists() for file in files)
    corpus = at_hand(one, cache) if alike and kept else None
    if corpus is None or corpus.in_tokens:
        yield "\nSentences are not compared: it takes two translations of the same dev set, and its text in the cache."
        return
    sources, references = map(list, zip(*corpus.dev.pairs(), strict=True))
    sides = [file.read_bytes().decode().split("\n")[:-1] for file in files]
    target = one.pair.split("-")[1]
    counts = [ngram_counts(side, references, target)[0] for side in sides]
    found = over_sentences(counts[1:], counts[:1])
    interval = f"{_signed(found.low, 1)} to {_signed(found.high, 1)}"
    yield f"\nBLEU of dev, B {MINUS} A: {_signed(found.value, 1)}, 95 % interval over {found.n_sentences:,} sentences"
    yield f"{interval}. It says nothing of other seeds."
    yield f"\nThe {SHOWN} sentences where A is ahead by most, then those where B is, with the BLEU of each:"
    ours, theirs = map(sentence_bleu, counts)
    order = (theirs - ours).argsort().tolist()
    for i in [*order[:SHOWN], *reversed(order[-SHOWN:])]:
        yield f"\n  source     {sources[i]}\n  reference  {references[i]}"
        yield f"  A {ours[i]:>7.1f}  {sides[0][i]}\n  B {theirs[i]:>7.1f}  {sides[1][i]}"
