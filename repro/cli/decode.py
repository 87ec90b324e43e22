"""Put a finished run to use: translate with it, score with it, hand it to CTranslate2.

python -m repro.decoding translate latest news.en > news.de
python -m repro.decoding score runs/<id> news.en news.de --engine ctranslate2
python -m repro.decoding export <id> exported
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.data.parallel_text import Parallel, read_lines
from repro.results.latest import run_folder
from repro.results.search import PAPER_SEARCH, Search
from repro.runs.command import ENGINES, Parser
from repro.runs.load import TOKENIZER, Trained, finished, open_run
from repro.storage import atomic
from repro.storage.folder_cache import made_once

if TYPE_CHECKING:
    from repro.data.shards import Encoded
    from repro.data.tokenizer import Tokenizer

STDIN = Path("/dev/stdin")
ORIGIN = "run.json"  # in an exported folder: whose weights these are
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
        command.add_argument("run", help="a finished run: latest, its folder, its id or the beginning of that")
        command.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are kept")
        command.add_argument("--cache-dir", type=Path, default=Path("cache"), help="has the tokenizers of older runs")
    for command in (translate, score):
        command.add_argument("--engine", choices=ENGINES, default="torch", help="who does the work (default: torch)")
        command.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of torch's products")
    translate.add_argument(
        "source", type=Path, nargs="?", default=STDIN, help="text, plain or gzip; else standard input"
    )
    beam, alpha = PAPER_SEARCH.beam, PAPER_SEARCH.alpha
    translate.add_argument("--beam", type=int, default=beam, help=f"hypotheses kept of each sentence (default: {beam})")
    translate.add_argument("--alpha", type=float, default=alpha, help=f"of the length penalty (default: {alpha})")
    score.add_argument("source", type=Path)
    score.add_argument("target", type=Path)
    export.add_argument("folder", type=Path, help="new, empty or of the same run")
    return parser.parse_args(argv)


def _opened(options: argparse.Namespace) -> Trained:
    """The run that is meant, which is said before what takes seconds; elsewhere than the translations."""
    folder = run_folder(options.run, options.runs_dir)
    run = finished(folder)
    print(
        f"{folder}: {run.table}, {run.row}, seed {run.seed}, scale {run.scale}, {run.pair}", file=sys.stderr, flush=True
    )
    return open_run(folder, options.cache_dir)


def _translate(options: argparse.Namespace) -> None:
    search = Search(options.beam, options.alpha)
    trained = _opened(options)
    from repro.decoding.backend import opened

    lines = list(read_lines(options.source))
    full = [line for line in lines if line]
    with opened(options.engine, trained.model, bf16=options.precision == "bf16") as engine:
        ids = engine.translate(_encoded(trained.tokenizer, full), search)
    translations = map(trained.tokenizer.decode, ids)
    for line in lines:
        text = next(translations) if line else ""
        sys.stdout.buffer.write(text.encode() + b"\n")


def _score(options: argparse.Namespace) -> None:
    trained = _opened(options)
    from repro.data.datamodule import DevBatches
    from repro.decoding.backend import opened

    text = Parallel(options.source, options.target)
    pairs = [pair for chunk in text.chunks() for pair in chunk.pairs()]
    source, target = (_encoded(trained.tokenizer, list(side)) for side in zip(*pairs, strict=True))
    batches = DevBatches(source, target, budget=BUDGET, rank=0, world=1)
    with opened(options.engine, trained.model, bf16=options.precision == "bf16") as engine:
        nll = engine.mean_nll(batches[i] for i in range(len(batches)))
    print(
        f"{len(pairs):,} pairs, {len(target.ids):,} target tokens: nll {nll:.6f} nats a token, ppl {math.exp(nll):.4f}"
    )


def _export(options: argparse.Namespace) -> None:
    """Fill a folder under another name, so that it is whole or absent; a damaged one of the same run makes way."""
    folder = options.folder.resolve()
    run = finished(run_folder(options.run, options.runs_dir))
    if folder.exists() and any(folder.iterdir()) and _exported(folder) != run.run:
        raise ValueError(
            f"expected a folder that is new, empty or holds the export of run {run.run}, got {options.folder}, which "
            "holds something else. Delete it, or name another."
        )

    def fill(empty: Path) -> dict[str, Any]:
        trained = _opened(options)
        from repro.decoding.ctranslate import export

        trained.tokenizer.save(empty / TOKENIZER)
        export(trained.model, empty)
        atomic.write_json(empty / ORIGIN, _origin(trained.record))
        return {}

    made_once(folder, fill)
    print(f"{options.folder}: run {run.run} for CTranslate2; its tokens are the numbers of tokens, in digits")


def _exported(folder: Path) -> str | None:
    """The run whose export a folder holds, whole or damaged."""
    try:
        run = json.loads((folder / ORIGIN).read_bytes())["run"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(run)


def _origin(run: Any) -> dict[str, Any]:
    """Whose weights these are."""
    return {name: getattr(run, name) for name in ("run", "table", "row", "scale", "seed", "pair", "hyper", "tokenizer")}


def _encoded(tokenizer: "Tokenizer", lines: list[str]) -> "Encoded":
    from repro.data.shards import Encoded

    return Encoded(*tokenizer.encode(lines))
