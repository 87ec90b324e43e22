"""results/<scale>/README.md: tables, verdicts and figures of one scale on one page. Paper: sections 4 and 6."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repro.claims.judge import OUTCOMES, Judged, sizes_here
from repro.pages import table2, table3
from repro.render.escape import markdown_text
from repro.render.grid import Column, markdown_grid
from repro.render.origin import made_from
from repro.results.frame import ABOUT_SPREADS, FIGURES, ResultSet, about_labels, about_own, departures_list
from repro.results.labels import ABOUT_SIZE
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame


NAME = "README.md"
PICTURES = {  # by the name of the file: what a reader sees. The paper's first, then ours
    "figure1_architecture": "The architecture, drawn from the modules of the model (figure 1)",
    "figure2_attention": "Scaled dot-product and multi-head attention, from the operations executed (figure 2)",
    "figure3_long_distance": "What the heads of the last encoder layer but one see from “making” (figure 3)",
    "figure4_sharp_heads": "The two heads that are sharpest at “its” (figure 4)",
    "figure5_different_heads": "The two heads that differ most (figure 5)",
    "positional_encoding": "Positional encoding (section 3.5)",
    "learning_rate": "The learning rate over the updates (section 5.3)",
    "softmax_saturation": "What dividing by √d_k prevents (section 3.2.1)",
    "quality_and_cost": "Quality against the cost of training, every row of Table 3",
}
ABOUT_REASONS = """\
In brackets stand the claim's number and what its rows showed on each score: bounds of a difference, or of a slope,
that is positive where the paper is right, at the level of the verdict. log PPL is the natural logarithm of PPL."""
CURVES = "curves_"  # and a table: how its rows learned


def build(result_set: ResultSet, judged: Sequence[Judged]) -> dict[Path, str]:
    """The page of one scale; nothing where it has no record."""
    return {result_set.folder / NAME: markdown(result_set, judged)} if result_set.everything else {}


def markdown(result_set: ResultSet, judged: Sequence[Judged]) -> str:
    """The page for a code host."""
    records, frame = result_set.everything, table3.frame_of(result_set)
    claim = records[0].settings["claim"]
    rows = {(record.table, record.row) for record in records}
    hours = sum(record.cost["train_seconds"] + record.cost["decode_seconds"] for record in records) / 3600
    parts = [
        f"<!-- {made_from('the records beside it')} -->",
        f"# *Attention Is All You Need* at scale {markdown_text(result_set.scale)}",
        f"{_several(len(records), 'run')} of {_several(len(rows), 'row')}, {hours:,.1f} hours in all. "
        f"A page of this scale may claim **{markdown_text(claim)}**, and says so where the paper claims more.",
        *(_table3(frame) if frame is not None else []),
        "## Verdicts on the paper's claims",
        _counts(judged),
        sizes_here(records),
        ABOUT_REASONS if (settled := _settled(judged)) else "",
        settled,
        "Every claim with its numbers, its verdict and the power behind it: [claims.md](claims.md).",
        "## Tables",
        _links(result_set),
        *_figures(result_set.folder),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table3(frame: "DataFrame") -> list[str]:
    notes = [f"- {markdown_text(note)}" for note in frame.attrs["notes"]]
    return [
        "## Table 3",
        markdown_grid(table3.page_columns(frame)[0]),
        about_labels(frame),
        about_own(frame),
        ABOUT_SPREADS,
        ABOUT_SIZE,
        f"What the rows change, here and at the paper's size: [{table3.NAME}.md]({table3.NAME}.md).",
        "What departs from the paper's recipe:",
        departures_list(frame),
        *(["Notes on the table:", "\n".join(notes)] if notes else []),
    ]


def _several(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _counts(judged: Iterable[Judged]) -> str:
    """How many claims came out how: those that training settles, and those settled otherwise."""
    found = list(judged)
    groups = {
        "settled by trained rows": [one for one in found if one.claim.is_trained],
        "settled by arithmetic, tests and measurements": [one for one in found if not one.claim.is_trained],
    }
    counts = [[f"{sum(one.verdict == v for one in group)}" for group in groups.values()] for v in OUTCOMES]
    shown = [(verdict, *count) for verdict, count in zip(OUTCOMES, counts, strict=True) if set(count) != {"0"}]
    headings = ("verdict", *groups)
    return markdown_grid(Column("", headings[i], [line[i] for line in shown]) for i in range(len(headings)))


def _settled(judged: Iterable[Judged]) -> str:
    """The claims about trained rows that were judged, each on a line."""
    return "\n".join(
        f"- **{one.verdict}**: {markdown_text(one.claim.sentence)} ({one.claim.id}; {markdown_text(one.reason)})"
        for verdict in OUTCOMES[:-1]
        for one in judged
        if one.claim.is_trained and one.verdict == verdict
    )


def _links(result_set: ResultSet) -> str:
    names = list(result_set.tables)
    has_table3 = any(name.startswith((BASE, table3.PARTS)) for name in names)
    pages = [*([table3.NAME] if has_table3 else []), *(name for name in names if name != BASE)]
    lines = [f"- [{page}]({page}.md), [LaTeX]({page}.tex), [CSV]({page}.csv)" for page in pages]
    if (result_set.folder.parent / "table1" / "table1.md").exists():
        lines.insert(0, "- [table1](../table1/table1.md), [LaTeX](../table1/table1.tex), [CSV](../table1/table1.csv)")
    if table2.NAME not in names:
        lines.append(
            f"- {table2.NAME}: no runs at this scale; `python experiments/{table2.NAME}.py --scale {result_set.scale}`"
        )
    return "\n".join(lines)


def _figures(folder: Path) -> list[str]:
    """The pictures that are there, the paper's first."""
    there = {file.stem for file in (folder / FIGURES).glob("*.png")}
    curves = {
        name: f"How the rows of {name.removeprefix(CURVES)} learned"
        for name in sorted(there)
        if name.startswith(CURVES)
    }
    captions = {name: text for name, text in (PICTURES | curves).items() if name in there}
    if not captions:
        return ["## Figures", f"None yet: `python experiments/figures.py --scale {folder.name}` draws them."]
    pictures = [f"![{text}]({FIGURES}/{name}.png)\n*{text}.*" for name, text in captions.items()]
    return ["## Figures", *pictures]
