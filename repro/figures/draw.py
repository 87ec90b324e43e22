"""Draw every figure of one scale: from the model's code, from records and from measurements of trained models.

    python experiments/figures.py --scale laptop

A figure whose numbers are missing is skipped with a sentence that says what to run; the others are made.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache as once
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from repro.claims.evidence import Evidence, evidence_of, read_published
from repro.figures import curves, scores, style
from repro.figures.style import Drawn
from repro.model.config import BASE as PAPER_BASE
from repro.pages.columns import has_part
from repro.results.frame import FIGURES, ResultSet, noted_rows, record_folders
from repro.results.labels import command_of
from repro.results.places import PUBLISHED
from repro.results.record import BASE, Record, load_records
from repro.results.sentences import has_sentences
from repro.runs.command import Parser, code_of, ended
from repro.runs.options import add_options
from repro.runs.scales import SCALES

if TYPE_CHECKING:
    from repro.figures.trained import Probe


def draw_figures(results: Path, scale: str, runs: Path, cache: Path) -> tuple[list[Path], list[str]]:
    """Make the figures of a scale; returns the files, and a sentence for each figure that was skipped."""
    files, skipped = list[Path](), list[str]()
    with style.house():
        for name, figures in _figures_of(results, scale, runs, cache).items():
            try:
                files += [style.save(results / scale / FIGURES, made) for made in figures()]
            except style.Missing as error:
                command = command_of(error.table, scale.partition("-")[0])  # options may follow in a folder's name
                skipped.append(f"{name}: {error}. Run `{command}{error.rows}`.")
            except ValueError as error:
                skipped.append(f"{name}: {error}")
    return files, skipped


def _figures_of(results: Path, scale: str, runs: Path, cache: Path) -> dict[str, Callable[[], Drawn]]:
    """The functions that make the figures of a scale, by name; data that several of them need is read once."""
    from repro.figures import attention_maps, heads, lab, trained  # they import PyTorch: --help does not wait for it

    place = results / scale
    if scale not in SCALES and not place.is_dir():
        published = f" Published records take --results-dir {PUBLISHED}." if (PUBLISHED / scale).is_dir() else ""
        raise ValueError(
            f"Unknown scale {scale!r}; expected one of {', '.join(SCALES)}, or a folder of {results}.{published}"
        )
    of = once(lambda table: load_records(place / table))  # the records of a table, each file read once
    tables = [folder.name for folder in record_folders(place) if folder.name != BASE]

    def of_weights(probe: "Probe") -> Drawn:
        """Of the measurement of the runs that are here, or else of the one under results."""
        here = trained.runs_of_rows(probe.rows, of, runs)
        return probe.draw(trained.measured(place / FIGURES, probe, here, runs, cache, scale=scale))

    def learned(table: str) -> Drawn:
        """With the base if it does the same task: parsing and translation are not compared."""
        base = [record for record in of(BASE) if any(record.about == other.about for other in of(table))]
        return curves.draw_curves(table, [*base, *of(table)])

    def of_systems(draw: Callable[..., Drawn], table: str, *more: Path) -> Drawn:
        """Only if rows have systems of their own, whose updates cost more or less, and which forget differently."""
        if not any(record.system and has_sentences(record) for record in of(table)):
            return []
        return draw(table, [*of(BASE), *of(table)], *more)

    def third() -> list[Record]:
        """The records of Table 3; other tables ask other questions, on other text."""
        return [record for name in dict.fromkeys((BASE, *filter(has_part, tables))) for record in of(name)]

    figures: dict[str, Callable[[], Drawn]] = {
        "figures 1 and 2": _of_modules,
        "figures 3 to 5": partial(of_weights, attention_maps.ATTENTION),
        **lab.PICTURES,
        "head similarity": lambda: heads.draw_similarity(of(BASE), results),
        "soft alignment": lambda: heads.draw_alignments(of(heads.TABLE), of(BASE), results),
        "activations": partial(of_weights, trained.ACTIVATIONS),
        "gradients of the first word": partial(of_weights, trained.GRADIENTS),
        **{f"curves of {table}": partial(learned, table) for table in tables},
        **{f"operations of {table}": partial(of_systems, curves.draw_over_operations, table) for table in tables},
        **{f"fading of {table}": partial(of_systems, curves.draw_fading, table, results) for table in tables},
        "differences": lambda: scores.draw_differences(third(), _evidence(place, of), results),
        "quality and cost": lambda: scores.draw_quality(third()),
    }
    if scores.TEXT_SIZES_TABLE in tables:
        figures["sizes of text"] = lambda: scores.draw_text_sizes(chain.from_iterable(map(of, (BASE, *tables))))
    return figures


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
    print(f"Figures of {options.results_dir / options.scale}", flush=True)  # shown before the slow part
    try:
        made, skipped = draw_figures(options.results_dir, options.scale, options.runs_dir, options.cache_dir)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)
    print(*made, *(f"Skipped {sentence}" for sentence in skipped), sep="\n")
    return 0


def _of_modules() -> Drawn:
    """Figures 1 and 2, which are derived from the model's modules.

    The model is a narrow base, which is fast to build; the pictures do not show widths.
    """
    from repro.figures import architecture
    from repro.model.transformer import Transformer

    narrow = Transformer(replace(PAPER_BASE, d_model=16, d_ff=32, d_k=2, d_v=2), vocab_size=11)
    return [*architecture.draw_architecture(narrow), *architecture.draw_operations()]


def _evidence(place: Path, of: Callable[[str], list[Record]]) -> Evidence:
    """The evidence that the pages of verdicts have, from all records of the scale."""
    tables = {folder.name: of(folder.name) for folder in record_folders(place)}
    found = ResultSet(folder=place, tables=tables, rows=noted_rows(place))
    return evidence_of(found.everything, found.rows, read_published(place, found.everything))
