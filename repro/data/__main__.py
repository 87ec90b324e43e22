"""Get a corpus, make it ready to train on, and look at it.

    python -m repro.data fetch wmt14-en-de
    python -m repro.data prepare wmt14-en-de
    python -m repro.data inspect wmt14-en-de

An experiment that asks for the same corpus, vocabulary and rules finds it prepared.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repro.data.cleaning import RULES, check_rules
from repro.data.corpus import CORPORA, FETCHED, GrammarSizes, open_corpus
from repro.data.pieces import Pieces
from repro.data.sources import COLLECTIONS

if TYPE_CHECKING:
    from repro.data.store import Prepared

ARCHIVES = "archives"  # folder of what was received, beside that of its texts
BATCH_TOKENS = 25_000  # of each side in one update. Paper: section 5.1
SHOWN = 3  # pairs


def main(argv: Sequence[str] | None = None) -> int:
    """Get a corpus, make it ready to train on, and look at it."""
    options = _options(argv)
    try:
        name, pair = _name_and_pair(options.corpus)
        if options.command == "fetch":
            _fetch(name, pair, options)
        else:
            prepared = _prepare(name, pair, options)
            if options.command == "inspect":
                _inspect(prepared)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from there.", file=sys.stderr)
        return 130
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m repro.data", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    names = f"a corpus and a language pair: {', '.join(COLLECTIONS)}, multi30k-en-de, ..."

    fetch = commands.add_parser("fetch", help="download and unpack the archives of a corpus")
    fetch.add_argument("corpus", help=names)
    fetch.add_argument("--data-dir", type=Path, default=Path("data"), help="where archives and text go: %(default)s")
    fetch.add_argument("--offline", action="store_true", help="use archives that were put there by hand")
    fetch.add_argument("--dry-run", action="store_true", help="say what would be fetched, and the disk it takes")

    prepare = commands.add_parser("prepare", help="learn the sub-words and encode the text")
    inspect = commands.add_parser("inspect", help="show the data card, the plan of an epoch and some pairs")
    for command in (prepare, inspect):
        command.add_argument("corpus", help=names)
        command.add_argument("--data-dir", type=Path, help="where the text is; default: data, or $REPRO_DATA")
        command.add_argument("--cache-dir", type=Path, default=Path("cache"), help="default: %(default)s")
        command.add_argument("--vocab-size", type=int, help="pieces; default: the paper's for the corpus, or 37,000")
        command.add_argument("--max-length", type=int, default=256, help="pieces of a side; default: %(default)s")
        rules = "; ".join(f"{rule.name}: {rule.meaning}" for rule in RULES.values())
        command.add_argument("--clean", nargs="+", default=[], metavar="RULE", help=f"leave out pairs. {rules}")
        command.add_argument("--workers", type=int, help="processes; default: one for each core")
    return parser.parse_args(argv)


def _name_and_pair(corpus: str) -> tuple[str, str]:
    """("wmt14", "en-de") for "wmt14-en-de"."""
    name, *pair = corpus.rsplit("-", 2)
    if len(pair) != 2 or name not in CORPORA:
        raise ValueError(
            f"Expected a corpus and a language pair like wmt14-en-de, got {corpus!r}; corpora are {', '.join(CORPORA)}."
        )
    return name, "-".join(pair)


# Fetch -----------------------------------------------------------------------------------------------------


def _fetch(name: str, pair: str, options: argparse.Namespace) -> None:
    from repro.data.fetch import instructions, missing, text

    if (known := COLLECTIONS.get(f"{name}-{pair}")) is None:
        raise ValueError(f"Nothing to fetch for {name}-{pair}. {CORPORA[name].origin}")
    archives, texts = options.data_dir / ARCHIVES, options.data_dir / FETCHED
    lacking = missing(known, archives, texts)
    print(
        f"{name}-{pair}: {known.n_train:,} pairs in {len(known.sources)} sources, licence: {known.licence}\n"
        f"still to fetch: {len(lacking)} archives, at most {_gigabytes(sum(one.size_at_most for one in lacking))}; "
        f"their text takes about {_gigabytes(known.text_bytes)}"
    )
    if options.dry_run:
        print(instructions(known, archives, texts) or "Everything is there.")
        return
    for source in known.sources:
        text(source, pair, archives, texts, offline=options.offline)
    print(f"All text is in {texts}. What next:\n  {_python()} -m repro.data prepare {name}-{pair} {_where(options)}")


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"


def _where(options: argparse.Namespace) -> str:
    return f"--data-dir {options.data_dir}"


def _python() -> str:
    """How the user calls the interpreter that runs this."""
    interpreter = os.path.relpath(sys.executable)
    return "python" if interpreter.startswith("..") else interpreter


# Prepare ---------------------------------------------------------------------------------------------------


def _prepare(name: str, pair: str, options: argparse.Namespace) -> "Prepared":
    from repro.data.prepare import prepare

    rules = check_rules(options.clean)
    sizes = GrammarSizes(n_train=20_000, n_dev=500, n_test=500)  # of the embedded corpus, as at scale laptop
    corpus = open_corpus(name, pair, data_dir=options.data_dir, cache=options.cache_dir, sizes=sizes)
    own = CORPORA[name].pieces.get(pair, Pieces("bpe", 37_000))
    prepared = prepare(
        corpus,
        pieces=Pieces(own.kind, options.vocab_size or own.size),
        cache=options.cache_dir,
        max_length=options.max_length,
        rules=rules,
        workers=options.workers,
        tell=print,
    )
    sizes_of = ", ".join(f"{split} {numbers['pairs']:,}" for split, numbers in prepared.counts.items())
    print(
        f"{name}-{pair}: {sizes_of} pairs in {prepared.tokenizer.size:,} pieces, {prepared.seconds:.1f} s; "
        f"manifest {prepared.manifest_hash[:16]}\n{prepared.card / 'data_card.md'}"
    )
    return prepared


# Inspect ---------------------------------------------------------------------------------------------------


def _inspect(prepared: "Prepared") -> None:
    """The card, what an epoch is cut into, and the first pairs as they are read."""
    from repro.data.buckets import FILLS, plan_epoch

    print((prepared.card / "data_card.md").read_bytes().decode())
    source, target = prepared.train.source, prepared.train.target
    for name, fill in FILLS.items():
        plan = plan_epoch(
            source.lengths,
            target.lengths,
            budget=BATCH_TOKENS,
            fill=fill,
            data_hash=prepared.data_hash,
            seed=1,
            epoch=0,
        )
        tokens = plan.source_tokens.sum() / len(plan), plan.target_tokens.sum() / len(plan)
        print(
            f"An epoch in updates of {BATCH_TOKENS:,} {name} a side: {len(plan):,} updates of {tokens[0]:,.0f} source "
            f"and {tokens[1]:,.0f} target pieces on average, {plan.padding:.2%} of their slots padding."
        )
    for i in range(min(SHOWN, len(source))):
        print(f"\npair {i}")
        for side in (source, target):
            ids = side.sentence(i)
            print(f"  {prepared.tokenizer.decode(ids.tolist())}\n    {' '.join(map(str, ids))}")


if __name__ == "__main__":
    sys.exit(main())
