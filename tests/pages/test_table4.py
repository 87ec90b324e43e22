"""The page of parsers: printed numbers only beside the paper's text."""

from pathlib import Path
from typing import Any

import numpy as np
from parser_runs import parser

from repro.pages.tables import at_the_end, page_of_table
from repro.render.markdown import markdown
from repro.render.terminal import terminal
from repro.results.brackets import Brackets
from repro.results.frame import table
from repro.results.parts import with_brackets

ROWS = ("WSJ only", "semi-supervised")


def brackets(right: int) -> Brackets:
    """Of six sentences, all gold brackets found but in the longest, of which so many."""
    sizes = np.array([1, 2, 3, 5, 7, 11])
    return Brackets(sizes, sizes, sizes, np.array([1, 2, 3, 5, 7, right]), {})


def frame_of(
    results: Path, *, n_seeds: int, rows: tuple[str, ...] = ROWS, name: str = "table4", corpus: str = "grammar_trees"
) -> Any:
    records = [
        parser(results, row, seed, dict.fromkeys(("dev", "test"), of), table=name, corpus=corpus, position=i)
        for i, row in enumerate(rows)
        for seed in range(4, 4 + n_seeds)
        for of in [brackets(seed + 2 * i)]
    ]
    return with_brackets(table(records), records, results)


def text_of(frame: Any, *, name: str = "table4") -> str:
    return markdown(page_of_table(frame, "laptop", name))


def test_what_is_printed_stands_beside_runs_on_the_papers_text_alone(tmp_path: Path) -> None:
    for corpora, is_papers in ((("wsj",), True), (("wsj", "wsj_silver"), True), (("craft",), False)):
        frame = frame_of(tmp_path, n_seeds=1, corpus=corpora[0])
        frame.attrs["corpora"] = list(corpora)
        runs = text_of(frame).split("## Our runs")[1].split("\n## ")[0]
        assert ("91.3" in runs) == is_papers, corpora
        shown = " ".join(terminal(at_the_end(frame, "table4")).split())
        assert ("91.3" in shown, "no number here can be compared" in shown) == (is_papers, not is_papers)


def test_a_grid_of_rates_has_no_printed_parsers_and_says_where_numbers_are_explained(tmp_path: Path) -> None:
    for name, is_whole in (("table4", True), ("table4_grid", False)):
        text = text_of(frame_of(tmp_path, n_seeds=1, name=name), name=name)
        assert ("## As printed" in text) == is_whole
        assert "](../../docs/parsing.md#the-page)" in text
