"""What a page begins with: which rows are better than the base, which worse, and of which nothing can be said."""

from typing import Any

from paper_runs import paper_run

from repro.pages.columns import NAMED, found, scored
from repro.render.page import plain
from repro.results.frame import table
from repro.results.record import PaperNumbers, Record


def run(row: str, seed: int, bleu: float) -> Record:
    scores: Any = {split: {**paper_run().scores["dev"], "bleu": bleu} for split in ("dev", "test")}
    paper = PaperNumbers(ppl=5.0, bleu=24.9 if row == "one" else 25.8 if row == "base" else None, params=None)
    return paper_run(row, "base" if row == "base" else "lab", seed=seed, scores=scores, paper=paper)


def frame(**rows: tuple[float, ...]) -> Any:
    """Of the base with 51, 52 and 53 BLEU on seeds 1 to 3, and of rows with so much more on the first of them."""
    base = [run("base", seed, 50.0 + seed) for seed in (1, 2, 3)]
    return table(
        [run(row, i, 50.0 + i + more) for row, of in rows.items() for i, more in enumerate(of, start=1)], base=base
    )


def test_rows_stand_by_what_their_seeds_say_the_largest_first() -> None:
    shown = frame(one=(-2.0, -2.0, -2.3), up=(5.0, 6.0, 7.0), more=(9.0, 9.0, 9.0), near=(3.0, 1.0, 1.1), few=(4.0,))
    assert [plain(line) for line in found(shown).items] == [
        "Better than the base, in BLEU on dev: more +9.0 ± 0.0, up +6.0 ± 2.5.",  # t(2) 4.303 times 1 / sqrt 3
        "Worse than the base, in BLEU on dev: one −2.1 ± 0.4 (paper −0.9).",
        "Not told apart from the base, in BLEU on dev: near +1.7 ± 2.8.",
        "Too few seeds to tell, in BLEU on dev: few +4.0.",
    ]


def test_of_many_rows_the_others_are_counted_and_of_none_nothing_is_said() -> None:
    many = {f"r{i}": (i, i, i) for i in range(1, NAMED + 3)}
    [line] = found(frame(**many)).items
    assert plain(line).startswith(f"Better than the base, in BLEU on dev: r{NAMED + 2} +{NAMED + 2}.0")
    assert plain(line).endswith(", and 2 more.")
    assert not found(table([run("one", 1, 50.0)])).items, "without a base"


def test_rows_that_are_not_compared_stand_with_their_scores() -> None:
    assert [plain(line) for line in scored(frame(one=(2.0, 2.0, 2.0)), "test/bleu", "BLEU on test").items] == [
        "BLEU on test: base 52.0 ± 2.5, one 54.0 ± 2.5."
    ]
