"""Put a finished run to use: translate with it, score with it, hand it to CTranslate2.

python -m repro.decoding translate runs/<id> news.en > news.de
python -m repro.decoding score runs/<id> news.en news.de --engine ctranslate2
python -m repro.decoding export runs/<id> exported
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro import durable
from repro.command import Parser, ended
from repro.data.text import Parallel, read_lines
from repro.trained import open_run

if TYPE_CHECKING:
    from repro.data.store import Encoded
    from repro.data.tokenizer import Tokenizer

STDIN = Path("/dev/stdin")
BUDGET = 4_096  # slots of a batch that is scored


def main(argv: Sequence[str] | None = None) -> int:
    """Put a finished run to use."""
    options = _options(argv)
    try:
        if options.command == "export":
            _export(options)
        else:
            {"translate": _translate, "score": _score}[options.command](options)
    except BrokenPipeError:
        raise
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m repro.decoding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)

    translate = commands.add_parser("translate", help="write the translation of each line to standard output")
    score = commands.add_parser("score", help="perplexity and mean loss of given translations")
    export = commands.add_parser("export", help="write the model in CTranslate2's format, its tokenizer beside it")
    for command in (translate, score, export):
        command.add_argument("run", type=Path, help="folder of a finished run: runs/<id>")
        command.add_argument("--cache-dir", type=Path, default=Path("cache"), help="where its tokenizer is kept")
    for command in (translate, score):
        from repro.decoding.engine import NAMES

        command.add_argument("--engine", choices=NAMES, default="torch", help="who does the work (default: torch)")
        command.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of torch's products")
    translate.add_argument(
        "source", type=Path, nargs="?", default=STDIN, help="text, plain or gzip; else standard input"
    )
    translate.add_argument("--beam", type=_positive, default=4, help="hypotheses kept of each sentence (default: 4)")
    translate.add_argument("--alpha", type=float, default=0.6, help="strength of the length penalty (default: 0.6)")
    score.add_argument("source", type=Path)
    score.add_argument("target", type=Path)
    export.add_argument("folder", type=Path, help="new or empty")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def _translate(options: argparse.Namespace) -> None:
    from repro.decoding.engine import opened

    trained = open_run(options.run, options.cache_dir)
    lines = list(read_lines(options.source))
    full = [line for line in lines if line]
    with opened(options.engine, trained.model, bf16=options.precision == "bf16") as engine:
        ids = engine.translate(_encoded(trained.tokenizer, full), width=options.beam, alpha=options.alpha)
    translations = map(trained.tokenizer.decode, ids)
    for line in lines:
        text = next(translations) if line else ""
        sys.stdout.buffer.write(text.encode() + b"\n")


def _score(options: argparse.Namespace) -> None:
    from repro.data.translation import DevBatches
    from repro.decoding.engine import opened

    trained = open_run(options.run, options.cache_dir)
    text = Parallel(options.source, options.target)
    pairs = [pair for passage in text.passages() for pair in passage.pairs()]
    source, target = (_encoded(trained.tokenizer, list(side)) for side in zip(*pairs, strict=True))
    batches = DevBatches(source, target, budget=BUDGET, rank=0, world=1)
    with opened(options.engine, trained.model, bf16=options.precision == "bf16") as engine:
        nll = engine.mean_nll(batches[i] for i in range(len(batches)))
    print(
        f"{len(pairs):,} pairs, {len(target.ids):,} target pieces: nll {nll:.6f} nats a piece, ppl {math.exp(nll):.4f}"
    )


def _export(options: argparse.Namespace) -> None:
    from repro.decoding.ctranslate import export

    if options.folder.exists() and any(options.folder.iterdir()):
        raise ValueError(f"expected a new or empty folder, got {options.folder}, which holds files. Name another.")
    trained = open_run(options.run, options.cache_dir)
    options.folder.mkdir(parents=True, exist_ok=True)
    trained.tokenizer.save(options.folder / "tokenizer.json")
    export(trained.model, options.folder)
    durable.write_json(options.folder / "run.json", _origin(trained.record))
    print(
        f"{options.folder}: run {trained.record.run} for CTranslate2; its tokens are the numbers of pieces, in digits"
    )


def _origin(run: Any) -> dict[str, Any]:
    """Whose weights these are."""
    return {name: getattr(run, name) for name in ("run", "table", "row", "scale", "seed", "pair", "hyper", "tokenizer")}


def _encoded(tokenizer: "Tokenizer", lines: list[str]) -> "Encoded":
    from repro.data.store import Encoded

    return Encoded(*tokenizer.encode(lines))


if __name__ == "__main__":
    sys.exit(ended(main))
