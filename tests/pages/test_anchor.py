"""The anchor's page holds our scores against the published ones, where text, row and number of runs allow it."""

from typing import Any

import pytest
from paper_runs import paper_run

from repro.pages import tables
from repro.pages.anchor import anchor_section
from repro.render.markdown import markdown
from repro.render.page import Table
from repro.results.frame import table
from repro.results.record import CorpusFacts, PaperNumbers, Record

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
