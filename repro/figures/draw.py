"""Every figure of one scale: from the model's code, from records and from a measurement of a trained model.

    python experiments/figures.py --scale laptop

A figure whose numbers are not there is skipped with a sentence that says what to run; the others are made.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache as once
from functools import partial
from itertools import starmap
from pathlib import Path

from repro.claims.evidence import read_published
from repro.claims.judge import evidence_of
from repro.claims.to_base import Distances
from repro.figures import (
    activations,
    alignments,
    attention_maps,
    checkpoints,
    curves,
    decoders,
    fading,
    forest,
    lab,
    likeness,
    mechanism,
    own_sentence,
    quality,
    source_gradients,
    style,
    text_sizes,
    trees,
)
from repro.model.config import BASE as PAPER_BASE
from repro.model.config import Hyper
from repro.pages import table4
from repro.pages.table3 import has_part
from repro.results.frame import FIGURES, ResultSet, load_records, noted_rows, record_folders
from repro.results.places import PUBLISHED
from repro.results.publish import changed_files, contents
from repro.results.record import BASE, Record
from repro.results.sentences import has_sentences
from repro.runs.command import Parser, code_of, ended
from repro.runs.options import add_options
from repro.runs.processors import processors
from repro.runs.scales import SCALES
from repro.storage.process_pool import process_pool

Load = Callable[[str], list[Record]]  # the records of a table, each file read once
Figures = dict[str, Callable[[], list[Path]]]  # by its name what makes each, and gives its files
_figures: Figures = {}  # of a process that draws some of them beside others
ONE_ENDED = (
    "A process that drew figures has ended: from outside, or for want of memory? The figures that were finished are "
    "there; type the command again for the others."
)
MAKE_ALL = "python experiments/all_tables.py"
LONGEST = "differences"  # it reads every record: begun last it would be waited for alone
AT_ONCE = 4  # processes at most: each imports what it draws with and reads the records that it needs


def draw_figures(
    results: Path, scale: str, runs: Path, cache: Path, *, processes: int = 1
) -> tuple[list[Path], list[str]]:
    """Make the figures of a scale; gives the files, and a sentence for each figure that was skipped.

    More `processes` than one share them out: most of the time is matplotlib's, which uses one processor.
    """
    figures = _figures_of(results, scale, runs, cache)
    if processes == 1:
        drawn = [*starmap(_made, figures.items())]
    else:
        with process_pool(processes, _begin, results, scale, runs, cache, where_one_ends=ONE_ENDED) as pool:
            begun = [pool.submit(_drawn, names) for names in _shares(figures, results / scale)]
            made = {name: files for one in begun for name, files in one.result().items()}
            drawn = [made[name] for name in figures]
    return [file for files, _ in drawn for file in files], [said for _, said in drawn if said]


def _shares(figures: Iterable[str], place: Path) -> list[tuple[str, ...]]:
    """What a process draws in turn: the figures of one table, whose records it then reads once, or any other.

    Those of most records are begun first, since whatever is begun last is waited for alone.
    """
    shares: dict[str, tuple[str, ...]] = {}
    for name in figures:
        table = name.rpartition(" of ")[2]
        share = table if (place / table).is_dir() else name
        shares[share] = (*shares.get(share, ()), name)
    n_records = {share: len([*(place / share).glob("*.json")]) for share in shares}
    return [shares[share] for share in sorted(shares, key=lambda share: (share != LONGEST, -n_records[share]))]


def _begin(results: Path, scale: str, runs: Path, cache: Path) -> None:
    _figures.update(_figures_of(results, scale, runs, cache))


def _drawn(names: Iterable[str]) -> dict[str, tuple[list[Path], str]]:
    """Some figures, in a process that began."""
    return {name: _made(name, _figures[name]) for name in names}


def _made(name: str, figure: Callable[[], list[Path]]) -> tuple[list[Path], str]:
    """Its files, and why there are none."""
    try:
        return figure(), ""
    except ValueError as error:
        return [], f"{name}: {error}"


def _figures_of(results: Path, scale: str, runs: Path, cache: Path) -> Figures:
    """Those of a scale; what several of them read is read once."""
    place = results / scale
    if scale not in SCALES and not place.is_dir():
        published = f" Published records take --results-dir {PUBLISHED}." if (PUBLISHED / scale).is_dir() else ""
        raise ValueError(
            f"Unknown scale {scale!r}; expected one of {', '.join(SCALES)}, or a folder of {results}.{published}"
        )
    to = place / FIGURES
    of = once(lambda table: load_records(place / table))
    tables = [folder.name for folder in record_folders(place) if folder.name != BASE]
    return {
        "figures 1 and 2": partial(_of_modules, to),
        "figures 3 to 5": partial(_attention, to, scale, runs, cache),
        "figures 3 to 5 on an own sentence": lambda: own_sentence.draw_own(to, of(BASE), results),
        "parse tree": partial(_tree, to, scale, runs, cache),
        "positional encoding": partial(mechanism.draw_positions, to),
        "learning rate": lambda: mechanism.draw_schedule(to, scale, _base(scale, of(BASE))),
        "softmax saturation": partial(mechanism.draw_saturation, to),
        "mask": partial(lab.draw_mask, to),
        "norms": partial(lab.draw_norms, to),
        "softmax of unequal scores": partial(lab.draw_sharpness, to),
        "position codes": partial(lab.draw_codes, to),
        "where the source enters": partial(decoders.draw_decoders, to),
        "head similarity": lambda: likeness.draw_similarity(to, of(BASE), results),
        "soft alignment": partial(_alignments, to, scale, of, results),
        "activations": partial(_activations, to, scale, of, runs, cache),
        "gradients of the first word": partial(_gradients, to, scale, of, runs, cache),
        **{f"curves of {table}": partial(_curves, to, of, table) for table in tables},
        **{f"operations of {table}": partial(_over_operations, to, of, table) for table in tables},
        **{f"fading of {table}": partial(_fading, to, of, table, results) for table in tables},
        LONGEST: partial(_differences, to, scale, of, tables, results),
        "quality and cost": partial(_quality, to, scale, of, tables),
        **({"sizes of text": partial(_text_sizes, to, of, tables)} if text_sizes.TABLE in tables else {}),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw every figure of a scale; those whose numbers are missing are named, with what to run."""
    if code := ended(partial(_main, arguments)):
        sys.exit(code)


def _main(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="figures.py", description=main.__doc__)
    add_options(
        parser,
        "scale",
        "results_dir",
        "runs_dir",
        "cache_dir",
        scale=f"the scale of the records and runs: {', '.join(SCALES)}, or a folder under results",
        results_dir="where records are, and figures go",
    )
    options = parser.parse_args(arguments)
    print(f"Figures of {options.results_dir / options.scale}", flush=True)  # before what takes seconds
    try:
        places = options.results_dir, options.scale, options.runs_dir, options.cache_dir
        before = contents(options.results_dir / options.scale / FIGURES)
        made, skipped = draw_figures(*places, processes=min(AT_ONCE, processors()))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)
    after = contents(options.results_dir / options.scale / FIGURES)
    print(
        *changed_files(before, after),
        *(f"as it was: {file}" for file in made if before.get(file) == after.get(file)),
        sep="\n",
    )
    for sentence in skipped:
        print(f"Skipped {sentence}")
    return 0


def _of_modules(to: Path) -> list[Path]:
    """Figures 1 and 2, which are read off the model's modules: in one process, as both import torch."""
    return [*_architecture(to), *_operations(to)]


def _architecture(to: Path) -> list[Path]:
    """Figure 1, of a narrow base model: widths are not in the picture, and narrow ones are made at once."""
    from repro.figures import architecture
    from repro.model.transformer import Transformer

    narrow = replace(PAPER_BASE, d_model=16, d_ff=32, d_k=2, d_v=2)
    drawn = architecture.stacks(Transformer(narrow, vocab_size=11))
    size = 6.4, architecture.height(drawn) / 72
    return [style.save_figure(to, "figure1_architecture", size, partial(architecture.paint_architecture, drawn=drawn))]


def _operations(to: Path) -> list[Path]:
    from repro.figures import operations

    left, right = operations.scaled_dot_product(), operations.multi_head()
    paint = partial(operations.paint_operations, left=left, right=right)
    return [style.save_figure(to, "figure2_attention", operations.paper_size(left, right), paint)]


def _attention(to: Path, scale: str, runs: Path, cache: Path) -> list[Path]:
    """Figures 3 to 5 of the newest base run here, or else of the measurement that stands under results."""
    file = to / "attention.json"
    measured = attention_maps.read_heads(file) if file.exists() else None
    run = checkpoints.run_of_table(BASE, scale, runs)
    if run and (measured is None or measured["run"] != run.run):
        measured = attention_maps.measure_heads(run, runs, cache)
        attention_maps.write_heads(file, measured)
    if measured is None:
        raise ValueError(
            f"no {file}, and no finished base run of scale {scale} in {runs} to make it from. "
            f"Run `{attention_maps.MAKE_AGAIN} --scale {scale}`."
        )
    return attention_maps.draw_attention(to, measured)


def _alignments(to: Path, scale: str, of: Load, results: Path) -> list[Path]:
    command = f"{alignments.MAKE_ALIGNMENTS} --scale {scale}"
    return alignments.draw_alignments(to, of(alignments.TABLE), of(BASE), results, command=command)


def _tree(to: Path, scale: str, runs: Path, cache: Path) -> list[Path]:
    """What the newest parser here makes of a sentence, or else what stands under results."""
    file = to / "tree.json"
    measured = trees.read_tree(file) if file.exists() else None
    run = checkpoints.run_of_table(table4.NAME, scale, runs)
    if run and (measured is None or measured["run"] != run.run):
        measured = trees.measure_tree(run, runs, cache)
        trees.write_tree(file, measured)
    if measured is None:
        raise ValueError(
            f"no {file}, and no finished run of Table 4 at scale {scale} in {runs} to make it from. "
            f"Run `{trees.MAKE_A_PARSER} --scale {scale}`."
        )
    return trees.draw_tree(to, measured)


def _activations(to: Path, scale: str, of: Load, runs: Path, cache: Path) -> list[Path]:
    """Of the runs here, or else of the measurement that stands under results."""
    records = checkpoints.runs_of_rows(activations.NORM_ROWS, of, runs)
    measure = partial(activations.measure_activations, runs=runs, cache=cache)
    command = f"{activations.MAKE_NORMS} --scale {scale}"
    measured = checkpoints.measured_runs(to / "activations.json", records, measure, command=command)
    return activations.draw_activations(to, measured)


def _gradients(to: Path, scale: str, of: Load, runs: Path, cache: Path) -> list[Path]:
    """The same of the ladder's runs."""
    records = checkpoints.runs_of_rows(source_gradients.LADDER_ROWS, of, runs)
    measure = partial(source_gradients.measure_gradients, runs=runs, cache=cache)
    command = f"{source_gradients.MAKE_LADDER} --scale {scale}"
    measured = checkpoints.measured_runs(to / "source_gradients.json", records, measure, command=command)
    return source_gradients.draw_gradients(to, measured)


def _base(scale: str, records: Sequence[Record]) -> Hyper:
    """The base of a scale: as it was run, else as it is defined."""
    if records:
        return Hyper(**records[0].hyper)
    if scale not in SCALES:
        raise ValueError(f"no record of the base row. Run `{attention_maps.MAKE_AGAIN} --scale {scale}`.")
    return SCALES[scale].base


def _curves(to: Path, of: Load, table: str) -> list[Path]:
    """Beside the base where that does the same task: losses of trees and of translations are not compared."""
    base = [record for record in of(BASE) if any(record.about == other.about for other in of(table))]
    return curves.draw_curves(to, table, [*base, *of(table)])


def _over_operations(to: Path, of: Load, table: str) -> list[Path]:
    """Where rows have systems of their own, whose updates cost more or less than the base's; else nothing."""
    return curves.draw_over_operations(to, table, [*of(BASE), *of(table)]) if _translate_anew(of(table)) else []


def _fading(to: Path, of: Load, table: str, results: Path) -> list[Path]:
    """Where rows have systems of their own, which forget otherwise than the base; else nothing."""
    return fading.draw_fading(to, table, [*of(BASE), *of(table)], results) if _translate_anew(of(table)) else []


def _translate_anew(records: Sequence[Record]) -> bool:
    """Whether a table shows other systems than the base's on the base's task."""
    return any(record.system and has_sentences(record) for record in records)


def _differences(to: Path, scale: str, of: Load, tables: Sequence[str], results: Path) -> list[Path]:
    distances = _distances(to.parent, of)
    return forest.draw_differences(to, _third(of, tables), distances, results, command=f"{MAKE_ALL} --scale {scale}")


def _quality(to: Path, scale: str, of: Load, tables: Sequence[str]) -> list[Path]:
    return quality.draw_quality(to, _third(of, tables), command=f"{MAKE_ALL} --scale {scale}")


def _text_sizes(to: Path, of: Load, tables: Sequence[str]) -> list[Path]:
    return text_sizes.draw_text_sizes(to, [record for table in (BASE, *tables) for record in of(table)])


def _distances(place: Path, of: Load) -> Distances:
    """Those that the pages of verdicts have, so of all records of the scale."""
    tables = {folder.name: of(folder.name) for folder in record_folders(place)}
    found = ResultSet(folder=place, tables=tables, rows=noted_rows(place))
    return Distances(evidence_of(found.everything, found.rows, read_published(place, found.everything)))


def _third(of: Load, tables: Sequence[str]) -> list[Record]:
    """The records of Table 3: other tables ask other questions, on other text."""
    names = dict.fromkeys((BASE, *filter(has_part, tables)))
    return [record for name in names for record in of(name)]
