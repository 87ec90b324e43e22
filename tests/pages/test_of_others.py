"""The anchor's page holds our scores against the published ones, where text, row and number of runs allow it."""

import math
from typing import Any

import numpy as np
import pytest
from paper_runs import paper_run

from repro.pages import tables
from repro.pages.of_others import NGRAMS, OF_TEST, _parts, anchor_section
from repro.render.markdown import markdown
from repro.render.page import Table, plain
from repro.results.frame import table
from repro.results.record import CorpusFacts, PaperNumbers, Record
from repro.results.sentences import NgramCounts

SPREAD = (-0.1, 0.0, 0.1)  # 95 %: the mean of three ± 0.2484, one more ± 4.3027 * 0.1 * sqrt(1 + 1 / 3) = ± 0.4968


def runs(*bleu: float, corpus: str = "multi30k_tok", row: str = "tiny") -> list[Record]:
    text: CorpusFacts = paper_run().corpus | {"name": corpus}  # type: ignore[assignment]
    made = []
    for seed, score in enumerate(bleu, 4):
        scores: Any = {split: {**score_of, "bleu": score} for split, score_of in paper_run().scores.items()}
        paper = PaperNumbers(ppl=None, bleu=None, params=None)
        made.append(paper_run(row, "anchor", seed=seed, position=0, corpus=text, scores=scores, paper=paper))
    return made


def outcome(*bleu: float) -> list[str]:
    [shown] = [block for block in anchor_section(table(runs(*bleu), base=[])) if isinstance(block, Table)]
    [column] = [column for column in shown.columns if column.heading == "outcome"]
    assert column.group == "test_2016_flickr"
    return [str(text) for text in column.texts]


def test_where_one_more_run_would_lie_is_shown() -> None:
    [shown] = [block for block in anchor_section(table(runs(40.9, 41.0, 41.1), base=[])) if isinstance(block, Table)]
    assert [column.texts for column in shown.columns if column.heading == "one more run"] == [["40.5 to 41.5"]]


@pytest.mark.parametrize(
    ("mean", "said"), [(40.52, "below it"), (40.53, "as one more run"), (41.51, "as one more run"), (41.52, "above it")]
)
def test_the_published_score_is_compared_with_the_interval_for_one_more_run(mean: float, said: str) -> None:
    assert outcome(*(mean + one for one in SPREAD)) == [said]


def test_two_runs_have_no_interval_to_judge_by() -> None:
    assert outcome(41.0, 41.04) == ["not judged: 2 of 3 runs"]


@pytest.mark.parametrize("other", [{"corpus": "multi30k"}, {"row": "small"}])
def test_another_text_or_row_has_nothing_published(other: dict[str, str]) -> None:
    assert anchor_section(table(runs(40.9, 41.0, 41.1, **other), base=[])) == ()  # type: ignore[arg-type]


def test_its_page_shows_no_columns_of_a_paper_that_has_no_such_row() -> None:
    page = markdown(tables.page(table(runs(40.9, 41.0, 41.1), base=[]), "captions-multi30k_tok", "anchor"))
    head = next(line for line in page.split("\n") if line.startswith("| row"))
    assert "paper" not in head
    assert "Δ" not in head
    assert page.index("as one more run.") < page.index("| test_2016_flickr<br>published |") < page.index("PPL (dev)")


def test_precisions_and_brevity_stand_beside_the_published_ones() -> None:
    # by hand: 8 and 12 tokens, references of 10 each, so no penalty; of 20 tokens 15 are right, of 18 pairs 9
    correct = np.array([[7, 4, 2, 1], [8, 5, 2, 1]])
    counts = NgramCounts(np.array([8, 12]), np.array([10, 10]), correct)
    short = NgramCounts(np.array([8, 8]), np.array([10, 10]), correct)
    assert _parts(counts.summands.sum(axis=0)) == pytest.approx([75.0, 50.0, 25.0, 100 * 2 / 14, 100.0])
    assert _parts(short.summands.sum(axis=0))[-1] == pytest.approx(100 * math.exp(1 - 20 / 16))
    shown = {f"{OF_TEST}/{name}{end}": 1.0 for name in NGRAMS for end in ("", "_half_width", "_min", "_max")}
    frame = table(runs(40.9, 41.0, 41.1), base=[]).assign(**shown)
    [beside] = [block for block in anchor_section(frame) if isinstance(block, Table)]
    assert {column.heading: plain(column.texts[0]).split(" ", 3)[-1] for column in beside.columns[-5:]} == {
        "1-grams": "(71.0)", "2-grams": "(47.5)", "3-grams": "(34.3)", "4-grams": "(24.5)", "brevity": "(99.9)",
    }  # fmt: skip
