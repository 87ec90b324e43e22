"""Get a corpus, and make it ready to train on, with the vocabulary and the longest sentence of the scale that reads it.

So an experiment at that scale finds it prepared.
"""

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from repro.corpora.catalogue import CORPORA, FETCHED, PROJECT
from repro.corpora.filters import FILTER_RULES, check_rules
from repro.corpora.sources import COLLECTIONS, craft_sources, missing_of_craft
from repro.corpora.treebanks import TREEBANKS, TREES
from repro.runs.command import Parser, experiment_command, folder_named, ours
from repro.runs.options import USUAL, add_options
from repro.runs.scales import SCALES
from repro.runs.table import Parsing, Task, Translation

ARCHIVES = "archives"  # folder of downloaded archives, beside that of their texts
FETCHABLE = f"{', '.join(COLLECTIONS)}; craft, which has trees"


def data(argv: Sequence[str] | None = None) -> int:
    """Get a corpus, and make it ready to train on."""
    parser = Parser(prog=ours("data"), description=data.__doc__)
    commands = parser.add_subparsers(required=True)

    fetch = commands.add_parser("fetch", help="download and unpack the archives of a corpus")
    fetch.set_defaults(command=_fetch)
    fetch.add_argument("corpus", nargs="?", help=f"a corpus and a language pair: {FETCHABLE}")
    fetch.add_argument("--list", action="store_true", help="say of each archive what it is, its address, size and hash")
    where, place = "default: $REPRO_DATA, then data/ of the project", os.environ.get("REPRO_DATA") or PROJECT / "data"
    fetch.add_argument("--data-dir", type=folder_named, default=Path(place), help=where)
    fetch.add_argument("--offline", action="store_true", help="download nothing; use archives put there by hand")
    fetch.add_argument("--dry-run", action="store_true", help="say what would be fetched, and how much disk it takes")

    own = commands.add_parser("import", help="turn your own text into a folder for --data-dir: docs/own_text.md")
    own.set_defaults(command=_import)
    own.add_argument("text", type=Path, help="a table (.tsv, .jsonl, ...), or what the names of two files share")
    own.add_argument("--pair", required=True, help="source and target language, such as en-es or en-zh-Hans")
    own.add_argument("--to", type=folder_named, required=True, help="the new folder")
    own.add_argument("--columns", nargs=2, metavar=("SOURCE", "TARGET"), help="columns of a table, by name or number")
    for split in ("dev", "test"):
        own.add_argument(f"--{split}", type=Path, help=f"the text for {split}, in any of the forms")
        own.add_argument(f"--{split}-share", type=float, help="share of the training text to hold out, such as 0.01")

    prepare = commands.add_parser("prepare", help="learn the sub-words and encode the text; check all that is there")
    prepare.set_defaults(command=_prepare)
    prepare.add_argument("corpus", help="one of those, or a corpus that you have: tatoeba-en-de, folder-en-es, ...")
    prepare.add_argument("--data-dir", type=folder_named, help=where)
    prepare.add_argument("--max-length", type=int, help="longest sentence, in tokens of one side")
    rules = "; ".join(f"{name}: {rule.meaning}" for name, rule in FILTER_RULES.items())
    add_options(prepare, "cache_dir", "vocab_size", "clean", clean=f"leave out pairs. {rules}")
    prepare.add_argument("--workers", type=int, help="number of processes; default: one per core")

    options = parser.parse_args(argv)
    options.command(options)
    return 0


def _name_and_pair(corpus: str | None) -> tuple[str, str]:
    """("news_commentary", "en-de") for "news-commentary-en-de"."""
    if corpus and (trees := corpus.replace("-", "_")) in TREEBANKS:
        return trees, TREES
    parts = corpus.split("-") if corpus else []
    for cut in range(len(parts) - 2, 0, -1):
        if (name := "_".join(parts[:cut])) in CORPORA:
            return name, "-".join(parts[cut:])
    raise ValueError(
        f"Expected a corpus and a language pair like wmt14-en-de, got {corpus!r}; corpora are {', '.join(CORPORA)}, of "
        f"which {', '.join(TREEBANKS)} have trees and no pair. These can be fetched: {FETCHABLE}."
    )


def _at(data_dir: Path) -> str:
    return f"--data-dir {shlex.quote(str(data_dir))}"


def _import(options: argparse.Namespace) -> None:
    from repro.corpora.importer import import_text

    made = import_text(
        options.text,
        options.to,
        options.pair,
        held_out={"dev": options.dev, "test": options.test},
        shares={"dev": options.dev_share, "test": options.test_share},
        columns=options.columns and (options.columns[0], options.columns[1]),
    )
    sizes = ", ".join(f"{split} {n:,}" for split, n in made.pairs.items())
    dropped, usual = f"; left out: {made.dropped}" * bool(made.dropped), SCALES[USUAL.scale]
    learned = f"--vocab-size {usual.vocab_size} --max-length {usual.max_length}"  # as the second command reads it
    print(f"{options.to}: {sizes} pairs{dropped}. The first one:\n  {made.first[0]}\n  {made.first[1]}\nWhat next:")
    print(f"  {ours('data', 'prepare')} folder-{options.pair} {learned} {_at(options.to)}")
    print(f"  {experiment_command('table3_A')} --pair {options.pair} {_at(options.to)}")


def _fetch(options: argparse.Namespace) -> None:
    from repro.corpora.fetch import by_hand, described, missing, text

    name, pair = _name_and_pair(options.corpus) if options.corpus or not options.list else ("", "")
    if name == "craft":
        _fetch_craft(options)
        return
    if name and f"{name}-{pair}" not in COLLECTIONS:
        raise ValueError(f"Nothing to fetch for {name}-{pair}. {CORPORA[name].origin}")
    if options.list:  # every archive: what it is, where, how large, its licence and hash
        chosen = [COLLECTIONS[f"{name}-{pair}"]] if name else COLLECTIONS.values()
        for source in {source.archive: source for one in chosen for source in one.sources}.values():
            print(*described(source), "", sep="\n")
        return
    known, archives, texts = COLLECTIONS[f"{name}-{pair}"], options.data_dir / ARCHIVES, options.data_dir / FETCHED
    lacking = missing(known, archives, texts)
    size = sum(one.size_at_most for one in lacking)
    print(
        f"{name}-{pair}: {known.n_train:,} pairs in {len(known.sources)} sources, licence: {known.licence}\n"
        f"still to fetch: {len(lacking)} archives, at most {size / 1e9:.1f} GB; "
        f"their text takes about {known.text_bytes / 1e9:.1f} GB"
    )
    if options.dry_run:
        print(by_hand(lacking, archives) if lacking else "Everything is there.")
        return
    for source in known.sources:
        text(source, pair, archives, texts, offline=options.offline)
    print(f"All text is in {texts}. What next:\n  {ours('data', 'prepare')} {name}-{pair} {_at(options.data_dir)}")


def _fetch_craft(options: argparse.Namespace) -> None:
    """Fetch the files of the treebank into its own folder, each known by its hash."""
    from repro.corpora.fetch import by_hand, fetch

    folder = options.data_dir / "craft"
    lacking = missing_of_craft(folder)
    print(f"craft: licence {CORPORA['craft'].licence}; still to fetch: {len(lacking)} files, 13 MB in all")
    if options.dry_run or options.list:
        print(by_hand(lacking, folder) if lacking else "Everything is there.")
        return
    for source in craft_sources():
        fetch(source, folder, offline=options.offline)
    print(f"All of it is in {folder}. {TREEBANKS['craft'].attribution}\nWhat next:")
    print(f"  {ours('data', 'prepare')} craft {_at(options.data_dir)}")
    print(f"  {experiment_command('table4')} --scale captions {_at(options.data_dir)} --rows 'WSJ only'")


def _prepare(options: argparse.Namespace) -> None:
    from repro.results.comparable import told_of

    name, pair = _name_and_pair(options.corpus)
    print(f"{name}-{pair}: tokens and ids go to {options.cache_dir}", flush=True)  # before what takes seconds
    from repro.corpora.prepare import prepare

    task: Task = Parsing() if name in TREEBANKS else Translation(pair)
    # the largest scale that reads this corpus
    of_corpus = [at for scale in SCALES.values() if (at := task.at(scale)).corpus == name]
    scale = of_corpus[-1] if of_corpus else replace(SCALES["paper"], corpus=name)
    scale = replace(scale, vocab_size=options.vocab_size or scale.vocab_size)
    rules = check_rules(options.clean)
    corpus = task.open_corpus(name, data_dir=options.data_dir, cache=options.cache_dir, sizes=scale.grammar)
    prepared = prepare(
        corpus,
        subwords=corpus.subwords(scale.subwords(pair), asked=options.vocab_size),
        cache=options.cache_dir,
        max_length=scale.max_length if options.max_length is None else options.max_length,
        rules=rules,
        workers=options.workers,
        tell=print,
    )
    print(*told_of(f"{name}-{pair}", prepared), sep="\n")
    print(f"manifest {prepared.manifest_hash[:16]}\n{prepared.card / 'data_card.json'}")
