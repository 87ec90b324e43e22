"""How two runs differ: settings, scores with an interval, curves, the sentences where they differ most.

python -m repro compare best base
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from repro.render.grid import aligned
from repro.results.latest import run_folder, run_names
from repro.results.parts import bleu_over_sentences
from repro.results.record import Record
from repro.results.sentences import NgramCounts, has_sentences
from repro.runs.command import Parser, ours
from repro.runs.load import finished
from repro.runs.options import add_options

LOOKS = 6  # points of two curves that are shown, at least; at most twice as many
SHOWN = 3  # sentences
NOT_TOLD = ("machine", "claim")  # settings that change nothing
MINUS = "\N{MINUS SIGN}"


def main(argv: Sequence[str] | None = None) -> int:
    """Say how two finished runs differ: settings, scores, curves, sentences of dev."""
    parser = Parser(prog=ours("compare"), description=main.__doc__)
    for name in ("A", "B"):
        parser.add_argument(name, help=f"a finished run: {run_names()}, its folder, its id or the beginning of it")
    add_options(parser, "runs_dir", "cache_dir", runs_dir="where runs are kept")
    options = parser.parse_args(argv)
    folders = [run_folder(typed, options.runs_dir) for typed in (options.A, options.B)]
    runs = [finished(folder) for folder in folders]
    if runs[0].run == runs[1].run:
        raise ValueError(f"expected two runs, got {runs[0].run} twice. {ours('runs')} lists what there is.")
    print(*_told(folders, runs, options.cache_dir), sep="\n")
    return 0


def _told(folders: Sequence[Path], runs: Sequence[Record], cache: Path) -> Iterator[str]:
    for letter, run in zip("AB", runs, strict=True):
        yield f"{letter}  {run.run}  {run.table}, {run.row}, seed {run.seed}, scale {run.scale}, {run.pair}"
    yield "\nSettings that differ:"
    ours, theirs = map(_settings, runs)
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    yield from _grid([("", "A", "B"), *((name, _text(ours.get(name)), _text(theirs.get(name))) for name in names)])
    yield "\nScores:"
    yield from _grid([("", "A", "B", f"B {MINUS} A"), *_scores(*runs)])
    if steps := _common_steps(*runs):
        curves = [dict(zip(run.curves["dev"]["step"], run.curves["dev"]["nll"], strict=True)) for run in runs]
        yield "\nLoss on dev, nats a token, unsmoothed, after so many updates:"
        yield from _grid([_numbers(f"{step:,}", 3, *(curve[step] for curve in curves)) for step in steps])
    texts = _texts(folders, runs, cache)
    if texts is None:
        yield "\nSentences are not compared: it takes two translations of the same dev set, and its text in the cache."
        return
    pairs, sides = texts
    counts = [_counts(side, [target for _, target in pairs], runs[0].pair) for side in sides]
    found = bleu_over_sentences(counts[1:], counts[:1])
    yield (
        f"\nBLEU of dev, B {MINUS} A: {_signed(found.value, 1)}, 95 % interval over {found.n_sentences:,} sentences "
        f"{_signed(found.low, 1)} to {_signed(found.high, 1)}.\nIt says nothing of other seeds."
    )
    yield f"\nThe {SHOWN} sentences where A is ahead by most, then those where B is, with the BLEU of each:"
    yield from _sentences(pairs, sides, counts)


def _settings(run: Record) -> dict[str, Any]:
    """All that was set, flat."""
    about: dict[str, Any] = {"system": run.system or "Transformer", "seed": run.seed, "scale": run.scale}
    text = {
        "pair": run.pair,
        "corpus": f"{run.corpus['name']} {run.corpus['sha256'][:8]}",
        "pieces": run.tokenizer["size"],
    }
    chosen = {name: value for name, value in run.settings.items() if name not in NOT_TOLD}
    return {**about, **text, **run.hyper, **chosen, "code": run.stamp["fingerprint"][:8]}


def _scores(ours: Record, theirs: Record) -> Iterator[tuple[str, str, str, str]]:
    """Each number of both, and by how much the second has more."""
    for split in ("dev", "test"):
        for name in dict.fromkeys(("ppl", ours.about["scores"][0], theirs.about["scores"][0])):
            digits = 2 if name == "ppl" else 1
            yield _numbers(f"{split} {name.upper()}", digits, ours.score(split, name), theirs.score(split, name))
    yield _numbers("parameters (M)", 2, ours.params["here"] / 1e6, theirs.params["here"] / 1e6)
    yield _numbers("training (s)", 0, ours.cost["train_seconds"], theirs.cost["train_seconds"])


def _common_steps(ours: Record, theirs: Record) -> list[int]:
    """Steps after which both runs have read dev: some of them, evenly spaced, and the last."""
    both = sorted({*ours.curves["dev"]["step"]} & {*theirs.curves["dev"]["step"]})
    return both[:: -max(1, len(both) // LOOKS)][::-1]


def _numbers(name: str, digits: int, ours: float | None, theirs: float | None) -> tuple[str, str, str, str]:
    first, second = ("none" if one is None else f"{one:.{digits}f}" for one in (ours, theirs))
    return name, first, second, "" if ours is None or theirs is None else _signed(theirs - ours, digits)


def _texts(
    folders: Sequence[Path], runs: Sequence[Record], cache: Path
) -> tuple[list[tuple[str, str]], list[list[str]]] | None:
    """Sources and references of dev, and what each run made of them; None unless both are of one text that is here."""
    from repro.runs.outputs import at_hand

    files = [folder / "dev.hyp" for folder in folders]
    alike = runs[0].corpus["sha256"] == runs[1].corpus["sha256"] and runs[0].pair == runs[1].pair
    if not alike or not all(map(has_sentences, runs)) or not all(file.exists() for file in files):
        return None
    corpus = at_hand(runs[0], cache)
    if corpus is None or corpus.in_tokens:
        return None
    return list(corpus.dev.pairs()), [file.read_bytes().decode().split("\n")[:-1] for file in files]


def _counts(hypotheses: Sequence[str], references: Sequence[str], pair: str) -> NgramCounts:
    from repro.results.sentences import ngram_counts

    return ngram_counts(hypotheses, references, pair.split("-")[1], in_tokens=False)["bleu"]


def _sentences(
    pairs: Sequence[tuple[str, str]], sides: Sequence[Sequence[str]], counts: Sequence[NgramCounts]
) -> Iterator[str]:
    from repro.web.sentences import sentence_bleu

    ours, theirs = map(sentence_bleu, counts)
    order = (theirs - ours).argsort().tolist()
    for i in [*order[:SHOWN], *reversed(order[-SHOWN:])]:
        source, reference = pairs[i]
        yield f"\n  source     {source}\n  reference  {reference}"
        yield f"  A {ours[i]:>7.1f}  {sides[0][i]}\n  B {theirs[i]:>7.1f}  {sides[1][i]}"


def _grid(lines: Sequence[tuple[str, ...]]) -> list[str]:
    columns = list(zip(*lines, strict=True))
    return ["  " + "  ".join(line).rstrip() for line in aligned(columns, [True, *[False] * (len(columns) - 1)])]


def _text(value: Any) -> str:
    return "none" if value is None or value == "" else str(value)


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", MINUS)
