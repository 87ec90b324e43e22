"""Columns of tables and what a page begins with: who is better, the mean of last checkpoints, verdicts, the anchor."""

import csv
import io
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from paper_runs import direction, paper_run
from table_records import both, cell, columns, diverged, run

from repro.claims.catalogue import ACCURACY, B0, BLEU, CLAIMS, D256, H1, H4, LOG_PPL, Claim, Endpoint
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.pages import columns as of_frame
from repro.pages import tables
from repro.pages.columns import MEAN_OF_LAST, NAMED, anchor_found, anchor_section, found, sheet
from repro.pages.scale_data import bleu_parts
from repro.render.markup import markdown
from repro.render.page import Table, plain
from repro.results import frame as frames
from repro.results.details import DECIDES, RATIO_TO_BASE
from repro.results.frame import table
from repro.results.record import CorpusFacts, PaperNumbers, Record


def with_bleu(row: str, seed: int, bleu: float) -> Record:
    scores: Any = {split: {**paper_run().scores["dev"], "bleu": bleu} for split in ("dev", "test")}
    paper = PaperNumbers(ppl=5.0, bleu=24.9 if row == "one" else 25.8 if row == "base" else None, params=None)
    return paper_run(row, "base" if row == "base" else "lab", seed=seed, scores=scores, paper=paper)


def compared(**rows: tuple[float, ...]) -> Any:
    """Of the base with 51, 52 and 53 BLEU on seeds 1 to 3, and of rows with so much more on the first of them."""
    base = [with_bleu("base", seed, 50.0 + seed) for seed in (1, 2, 3)]
    return table(
        [with_bleu(row, i, 50.0 + i + more) for row, of in rows.items() for i, more in enumerate(of, start=1)],
        base=base,
    )


def test_rows_stand_by_what_their_seeds_say_the_largest_first() -> None:
    shown = compared(one=(-2.0, -2.0, -2.3), up=(5.0, 6.0, 7.0), more=(9.0, 9.0, 9.0), near=(3.0, 1.0, 1.1), few=(4.0,))
    lengths = {"base": 0.0, "one": -0.03, "near": 0.01}
    shown = shown.assign(**{RATIO_TO_BASE: shown["row"].map(lengths), DECIDES: 1.0 * (shown["row"] == "one")})
    assert [plain(line) for line in found(shown).items] == [
        "Better than the base, in BLEU on dev: more +9.0 ± 0.0, up +6.0 ± 2.5.",  # t(2) 4.303 times 1 / sqrt 3
        "Worse than the base, in BLEU on dev: one −2.1 ± 0.4 (paper −0.9; length −0.030, decides).",
        "Not told apart from the base, in BLEU on dev: near +1.7 ± 2.8 (length +0.010).",
        "Too few seeds to tell, in BLEU on dev: few +4.0.",
    ]


def test_of_many_rows_the_others_are_counted_and_of_none_nothing_is_said() -> None:
    many = {f"r{i}": (i, i, i) for i in range(1, NAMED + 3)}
    [line] = found(compared(**many)).items
    assert plain(line).startswith(f"Better than the base, in BLEU on dev: r{NAMED + 2} +{NAMED + 2}.0")
    assert plain(line).endswith(", and 2 more.")
    assert not found(table([with_bleu("one", 1, 50.0)])).items, "without a base"


def test_rows_that_are_not_compared_stand_with_their_scores() -> None:
    assert [
        plain(line) for line in of_frame.scored(compared(one=(2.0, 2.0, 2.0)), "test/bleu", "BLEU on test").items
    ] == ["BLEU on test: base 52.0 ± 2.5, one 54.0 ± 2.5."]


# The mean of the last checkpoints


GROUP = f"{MEAN_OF_LAST} 10 (dev)"
RUNS = [
    *(both("base", seed, 60.0 + seed, 66.0 + seed, ppl=1.5, length=0.95) for seed in (1, 2, 3)),
    *(both("h=1", seed, 58.0 + seed, 67.5 + seed, ppl=1.75, length=0.9 + 0.01 * seed) for seed in (1, 2, 3)),
    both("h=4", 2, 61.0, 65.0, ppl=1.25),
]


def test_the_mean_of_checkpoints_has_columns_of_its_own() -> None:
    frame = frames.table(RUNS)
    assert cell(frame, "BLEU (dev)", "ours") == {"base": "62.0 ± 2.5", "h=1": "60.0 ± 2.5", "h=4": "61.0"}
    assert cell(frame, GROUP, "BLEU") == {"base": "68.0 ± 2.5", "h=1": "69.5 ± 2.5", "h=4": "65.0"}
    assert cell(frame, GROUP, "PPL") == {"base": "1.50 ± 0.00", "h=1": "1.75 ± 0.00", "h=4": "1.25"}
    assert cell(frame, GROUP, "length") == {"base": "0.950 ± 0.000", "h=1": "0.920 ± 0.025", "h=4": "1.000"}
    deltas = [column for column in columns(frame) if column.group == GROUP and str(column.heading) == "Δ"]
    assert [[str(one).replace("\N{MINUS SIGN}", "-") for one in column.texts] for column in deltas] == [
        ["", "+0.25", "-0.25"], ["", "+1.5", "-3.0"], ["", "-0.030", "+0.050"],
    ]  # fmt: skip
    [line] = [line for line in csv.DictReader(io.StringIO(sheet(frame))) if line["row"] == "h=1"]
    assert [line[f"last_mean_{name}"] for name in ("dev/bleu", "dev/bleu_to_base", "test/bleu")] == [
        "69.5",
        "1.5",
        "69.5",
    ]


def test_that_mean_is_over_the_seeds_that_have_such_scores_and_says_how_many() -> None:
    frame = frames.table([run("base"), run("h=1"), diverged("h=4", 1)])
    assert not [name for name in frame if "mean" in str(name)]
    for few in (frame, frames.table([*RUNS[:3], run("h=1")])):
        assert not [column for column in columns(few) if column.group.startswith(MEAN_OF_LAST)]
    frame = frames.table([*RUNS[:3], both("h=1", 1, 59.0, 68.0), run("h=1", 2, bleu=60.0), run("h=4", bleu=60.0)])
    assert cell(frame, "BLEU (dev)", "ours")["h=1"] == "59.5 [59.0, 60.0]"
    assert cell(frame, GROUP, "BLEU") == {"base": "68.0 ± 2.5", "h=1": "68.0", "h=4": ""}
    assert cell(frame, GROUP, "n") == {"base": "3", "h=1": "1", "h=4": ""}
    assert cell(frame, GROUP, "Δ", nth=1) == {"base": "", "h=1": "+1.0", "h=4": ""}, "to the base of that seed"
    assert not [one for one in columns(frames.table(RUNS)) if one.group == GROUP and one.heading == "n"], "all have it"
    few = frames.table([*RUNS[:3], both("h=1", 1, 59.0, 68.0, n=4)])
    assert cell(few, f"{MEAN_OF_LAST} 4 to 10 (dev)", "BLEU"), "the heading says how many checkpoints"


# Verdicts


def of_rows(*rows: tuple[str, str]) -> Any:
    runs = [paper_run(row, of, position=i, seed=seed) for i, (of, row) in enumerate(rows) for seed in (1, 2)]
    return table(runs, base=[paper_run(seed=seed) for seed in (1, 2)])


def judged(claim: Claim, verdict: Outcome) -> Judged:
    return Judged(claim=claim, verdict=verdict, reason="")


def worse(row: str) -> Claim:
    return direction("C1", "6.2", "The base is better", B0, row, scale="laptop")


def shown(frame: Any, *of: Judged) -> dict[str, str]:
    columns = of_frame.verdict_columns(frame, of)
    return dict(zip(frame["row"], columns[0].texts, strict=True)) if columns else {}  # type: ignore[arg-type]


HEADS = (("table3_A", "h=1"), ("table3_A", "h=4"))


def test_a_row_has_the_words_of_its_own_claims_whichever_of_the_two_is_better() -> None:
    other, better = worse(D256), direction("C2", "6.2", "More heads are better", H4, B0, scale="laptop")
    said = judged(worse(H1), "sign as printed"), judged(other, "undetermined"), judged(better, "opposite sign")
    assert shown(of_rows(*HEADS), *said) == {"base": "", "h=1": "sign as printed", "h=4": "opposite sign"}


def test_several_claims_have_their_scores_where_their_words_differ() -> None:
    said: tuple[tuple[Endpoint, Outcome], ...] = (
        (LOG_PPL, "sign as printed"),
        (BLEU, "undetermined"),
        (ACCURACY, "sign as printed"),
    )
    about = [(Found(endpoint=of, runs=(5, 5), verdict=Verdict(outcome=word, reason="")), word) for of, word in said]
    found = shown(of_rows(*HEADS), *(replace(judged(worse(H1), word), found=(one,)) for one, word in about))
    assert found["h=1"] == "sign as printed (log PPL, accuracy), undetermined (BLEU)"
    found = shown(of_rows(*HEADS), *(judged(replace(worse(H1), id=name), "undetermined") for name in ("C1", "C2")))
    assert found["h=1"] == "undetermined"


def test_claims_about_other_pairs_and_trends_say_nothing_of_a_row() -> None:
    among_others = direction("C3", "6.2", "One head is worse than four", H4, H1, scale="laptop")
    along = Claim(id="C4", where="6.2", says="More is better", kind="trend", rows=(H1, B0), sizes=(1, 8))
    alike = Claim(id="C6", where="6.2", says="Four do as well", kind="equivalence", rows=(B0, H4))
    found = judged(among_others, "sign as printed"), judged(along, "sign as printed")
    assert not of_frame.verdict_columns(of_rows(*HEADS), found)
    unknown = judged(alike, "not judged")
    assert not of_frame.verdict_columns(of_rows(*HEADS), [unknown]), "nothing is known of any row"
    found = judged(worse(H1), "sign as printed"), unknown
    assert shown(of_rows(*HEADS), *found) == {"base": "", "h=1": "sign as printed", "h=4": "not judged"}


def test_rows_of_table_2_are_compared_with_the_base_of_their_pair() -> None:
    big = direction("C5", "6.1", "Big is better", "table2/big en-de", "table2/base en-de", scale="captions")
    of_2 = of_rows(("table2", "base en-de"), ("table2", "big en-de"))
    assert shown(of_2, judged(big, "sign as printed")) == {"base": "", "base en-de": "", "big en-de": "sign as printed"}
    [column] = [
        column
        for column in tables.columns_of_table_2(of_2, [judged(big, "sign as printed")])
        if column.heading == "verdict"
    ]
    assert list(column.texts) == ["", "", "sign as printed"]


def test_every_page_of_a_table_has_the_column() -> None:
    of = [judged(worse(H1), "sign as printed")]
    for name in ("table3_A", "table3", "table2"):
        page = tables.page_of_table(of_rows(("table2", "base en-de"), *HEADS), "laptop", name, of)
        assert markdown(page).count("| sign as printed") == 1
    without = markdown(tables.page_of_table(of_rows(*HEADS), "laptop", "table3_A"))
    assert not re.search("verdict|statements", without)


def test_no_direction_of_the_list_names_a_base_twice() -> None:
    for claim in (claim for claim in CLAIMS if claim.kind == "direction"):
        assert len({*claim.rows}) == 2, claim.id
        assert sum(row.split("/", 1)[1].startswith("base") for row in claim.rows) <= 1, claim.id


def test_numbers_of_a_sentence_are_written_as_in_tables() -> None:
    said = "log PPL between -0.32 and -1e-05; (-3) in newstest2013-14, 3-5, S-1"
    assert of_frame.with_minus(said) == "log PPL between −0.32 and −1e-05; (−3) in newstest2013-14, 3-5, S-1"


# Published scores of the anchor

SPREAD = (-0.1, 0.0, 0.1)  # 95 %: the mean of three ± 0.2484, one more ± 4.3027 * 0.1 * sqrt(1 + 1 / 3) = ± 0.4968


def tried(*bleu: float, corpus: str = "multi30k_tok", row: str = "tiny") -> list[Record]:
    text: CorpusFacts = paper_run().corpus | {"name": corpus}  # type: ignore[assignment]
    made = []
    for seed, score in enumerate(bleu, 4):
        scores: Any = {split: {**score_of, "bleu": score} for split, score_of in paper_run().scores.items()}
        paper = PaperNumbers(ppl=None, bleu=None, params=None)
        made.append(paper_run(row, "anchor", seed=seed, position=0, corpus=text, scores=scores, paper=paper))
    return made


def outcome(*bleu: float) -> dict[str, str]:
    """What stands beside the one test set of the anchor, by heading."""
    [shown] = [block for block in anchor_section(table(tried(*bleu), base=[])) if isinstance(block, Table)]
    assert shown.columns[0] == ("", "test set", ["test_2016_flickr"], False)
    return {of.heading: str(of.texts[0]) for of in shown.columns}


@pytest.mark.parametrize(
    ("mean", "said"), [(40.52, "below it"), (40.53, "as one more run"), (41.51, "as one more run"), (41.52, "above it")]
)
def test_the_published_score_is_compared_with_the_interval_for_one_more_run(mean: float, said: str) -> None:
    side = "below" if mean < 41.02 else "above"  # one tenth and more away from 41.02, so all three are there
    assert outcome(*(mean + one for one in SPREAD))["outcome"] == f"{said}; each of ours {side}"
    near = outcome(*(41.0 + one for one in SPREAD))
    assert (near["one more run"], near["outcome"]) == ("40.5 to 41.5", "as one more run")
    assert outcome(41.0, 41.04)["outcome"] == "not judged: 2 of 3 runs"


@pytest.mark.parametrize("other", [{"corpus": "multi30k"}, {"row": "small"}])
def test_another_text_or_row_has_nothing_published(other: dict[str, str]) -> None:
    assert anchor_section(table(tried(40.9, 41.0, 41.1, **other), base=[])) == ()  # type: ignore[arg-type]


def test_precisions_brevity_and_length_stand_beside_the_published_ones() -> None:
    # by hand: 8 and 12 tokens, references of 10 each, so no penalty; of 20 tokens 15 are right, of 18 pairs 9
    assert bleu_parts(20, 20, *(15, 9, 4, 2), *(20, 18, 16, 14)) == pytest.approx([75, 50, 25, 100 * 2 / 14, 100, 100])
    short = bleu_parts(16, 20, *(15, 9, 4, 2), *(16, 14, 12, 10))
    assert short[-2:] == pytest.approx([100 * math.exp(1 - 20 / 16), 80])
    names = [f"{of_frame.OF_TEST}/{name}" for name in of_frame.NGRAMS]
    ends = {name + end: 0.5 for name in names for end in ("_half_width", "_min", "_max")}
    frame = table(tried(40.9, 41.0, 41.1), base=[]).assign(**dict(zip(names, short, strict=True)), **ends)
    assert [plain(line) for line in anchor_found(frame).items] == [
        "test_2016_flickr: 41.0 ± 0.2 BLEU, published 41.0: as one more run.",
        "test_2016_flickr, in per cent (published): 1-grams 93.8 ± 0.5 (71.0), 2-grams 64.3 ± 0.5 (47.5), 3-grams "
        "33.3 ± 0.5 (34.3), 4-grams 20.0 ± 0.5 (24.5), brevity 77.9 ± 0.5 (99.9), length 80.0 ± 0.5 (99.9).",
    ]
    assert len(anchor_found(frame.assign(**{names[-1]: math.nan})).items) == 1, "no counts"
