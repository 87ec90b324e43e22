"""Differences to the base with the right sign and both intervals, quality by cost; no word over another."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from figures.conftest import assert_words_stand_apart
from kept_sentences import REFERENCES, hypotheses, splits, with_scores
from paper_runs import that_counts
from sacrebleu.metrics.bleu import BLEU as SACREBLEU

from repro.claims.catalogue import BLEU, LOG_PPL
from repro.claims.evidence import evidence_of
from repro.claims.judge import judge
from repro.figures import draw, scores, style
from repro.figures.scores import (
    ComparedRow,
    _under,
    differences_to_base,
    draw_differences,
    draw_quality,
    of_other_cost,
    points,
)
from repro.pages import claims
from repro.results.details import OnText, Worth
from repro.results.record import Record, path
from repro.results.sentences import write_sentences

Make = Callable[..., Record]
PRINTED: dict[str, Any] = {
    "base": {"ppl": 4.92, "bleu": 25.8, "params": 65},
    "h=1": {"ppl": 5.29, "bleu": 24.9, "params": None},
}


def compared(records: Sequence[Record], results: Path) -> list[ComparedRow]:
    """The lines of the picture of these records alone."""
    evidence = evidence_of(records)
    return differences_to_base(records, evidence, results)


def counting(make: Make, row: str, of: Callable[[int], dict[str, Any]], **other: Any) -> list[Record]:
    """As many runs as the second look takes; `of` makes their scores of their seeds."""
    return [that_counts(make(row, seed, **of(seed), **other)) for seed in range(9, 14)]


def test_a_better_row_stands_at_the_right_by_either_score(a_record: Make, tmp_path: Path) -> None:
    base = counting(a_record, "base", lambda seed: {"ppl": 2.0, "bleu": 60 + seed}, paper=PRINTED["base"])
    row = counting(
        a_record,
        "h=1",
        lambda seed: {"ppl": 1.6 + seed % 2 / 1e6, "bleu": 61.5 + seed + seed % 3},
        paper=PRINTED["h=1"],
    )
    [line] = compared([*row, *base], tmp_path)
    assert (line.table, line.name, line.n) == ("table3_A", "h=1 (here 2)", 5)
    by_bleu, by_ppl = line.found[BLEU], line.found[LOG_PPL]
    assert by_bleu.value == pytest.approx(1.5 + 0.8)
    assert by_ppl.value == pytest.approx(math.log(2.0 / 1.6), rel=1e-5)
    assert by_bleu.paper == pytest.approx(24.9 - 25.8)
    assert by_ppl.paper == pytest.approx(math.log(4.92 / 5.29))
    assert by_bleu.over_seeds is not None
    assert by_bleu.over_seeds[0] < 2.3 < by_bleu.over_seeds[1]
    assert by_bleu.over_sentences is None, "no translations"


def test_the_interval_over_sentences_is_of_the_translations_that_stand_beside_the_records(
    a_record: Make, tmp_path: Path
) -> None:
    texts = {"base": splits(1), "h=1": splits(2)}
    runs = [with_scores(a_record(row, 1, run=f"{i}" * 16), of) for i, (row, of) in enumerate(texts.items())]
    for run in runs:
        write_sentences(path(tmp_path, run), run.run, texts[run.row])
    [line] = compared(runs, tmp_path)
    found = line.found[BLEU]
    worth = [SACREBLEU().corpus_score(hypotheses(seed, "dev"), [REFERENCES["dev"]]).score for seed in (1, 2)]
    assert found.value == pytest.approx(worth[1] - worth[0])
    assert found.over_sentences is not None
    assert found.over_sentences[0] <= found.value <= found.over_sentences[1]
    assert found.over_seeds is None, "one run of each"
    assert line.found[LOG_PPL].over_sentences is None


def test_the_numbers_beside_the_picture_are_those_of_the_claims(a_record: Make, tmp_path: Path) -> None:
    spread = {"base": 1, "h=1": 2, "h=16": 3, "h=32": 5}
    runs = [that_counts(a_record("half", seed, table="lab_parts", bleu=5 * seed)) for seed in range(9, 14)]
    for i, (row, by) in enumerate(spread.items()):
        runs += counting(
            a_record,
            row,
            lambda seed, i=i, by=by: {"bleu": 60 - i + by * (seed % 3), "ppl": 2 + by * (seed % 4) / 50},
            position=i - 1,
            paper=PRINTED.get(row, PRINTED["h=1"]),
        )
        runs.append(a_record(row, 1, bleu=99, position=i - 1, paper=PRINTED.get(row, PRINTED["h=1"])))
    for run in runs:
        run.save(path(tmp_path, run))
    made = draw._figures_of(tmp_path, "laptop", tmp_path / "no", tmp_path / "no")["differences"]()
    file = style.save(tmp_path, made[1])
    numbers = {(one["row"], one["endpoint"]): one for one in csv.DictReader(io.StringIO(file.read_text()))}
    page = claims.sheet(judge(evidence_of(runs)))
    said = {(one["claim"], one["endpoint"]): one for one in csv.DictReader(io.StringIO(page))}
    assert len(numbers) == 2 * 3, "another table than Table 3 is not drawn, and the base is what rows are held against"
    for (row, endpoint), drawn in numbers.items():
        claim = said.get(({"table3_A/h=1": "C28b", "table3_A/h=32": "C28c"}.get(row), endpoint))
        if claim is None:
            assert drawn["low"], "by the same seeds and spread"
            continue
        better, worse = claim["rows"].split()
        assert {better, worse} == {row, "base/base"}
        low, high = (claim[end] for end in ("low", "high"))
        turned = [(1 if better == row else -1) * float(number) for number in (claim["value"], low, high)]
        value, *ends = (float(drawn[name]) for name in ("row less base", "low", "high"))
        assert [value, *ends] == pytest.approx([turned[0], *sorted(turned[1:])], rel=1e-5)
        assert claim["n"] == " ".join(
            drawn[one] for one in (("n", "n of base") if better == row else ("n of base", "n"))
        )


def test_rows_stand_in_the_papers_order_what_it_prints_first_and_no_score_of_test_is_held_against_dev(
    a_record: Make, tmp_path: Path
) -> None:
    printed = {"paper": PRINTED["h=1"]}
    rows = [
        a_record("ours", table="lab_a"),
        a_record("d_k=16", table="table3_B", **printed),
        a_record("h=4", position=1, **printed),
        a_record("h=1", position=0, **printed),
        a_record("h=16", position=2, dirty=True, **printed),
        a_record("half", table="lab_x", **printed),
        a_record("big", table="table2", **printed),
        a_record("base", paper=PRINTED["base"]),
    ]
    lines = compared(rows, tmp_path)
    assert [(line.row, line.is_printed, line.found[BLEU].paper is not None) for line in lines] == [
        *(("half", True, True), ("big", True, False), ("h=1", True, True), ("h=4", True, True)),
        *(("d_k=16", True, True), ("ours", False, False)),
    ]


@pytest.mark.parametrize("rows", [("base",), ("h=1",)])
def test_without_the_base_or_another_row_there_is_no_picture(
    rows: Sequence[str], a_record: Make, tmp_path: Path
) -> None:
    runs = [a_record(row) for row in rows]
    with pytest.raises(ValueError, match=r"finished runs .* of the base and of another row"):
        draw_differences(runs, evidence_of(runs), tmp_path)


@pytest.mark.parametrize("names", [["h=1"], ["h=1", "h=4", "h=16", "h=32", "a row with rather a long name"]])
def test_no_word_lies_over_another_or_outside(names: Sequence[str], a_record: Make, tmp_path: Path) -> None:
    runs = []
    for i, row in enumerate(["base", *names]):
        for of in ({"paper": PRINTED.get(row, PRINTED["h=1"])}, {"paper": PRINTED["h=1"], "table": "table3_C"}):
            if row != "base" or "table" not in of:
                of_seed = lambda seed, i=i, row=row: {  # noqa: E731
                    "bleu": 30 + 3 * seed + len(row) + seed * i % 3, "ppl": 2 + seed * (i + 1) % 7 / 10,
                }  # fmt: skip
                runs += counting(a_record, row, of_seed, position=i, **of)
    explored = a_record("h=7", 12, table="table3_C", paper=PRINTED["h=1"])  # after a gap in the seeds
    runs.append(explored)
    figure: Any = draw_differences(runs, evidence_of(runs), tmp_path)[0]
    shown = [*figure.legends[0].get_texts()]
    for axes in figure.axes:
        (low, high), ticks = axes.get_xlim(), zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        shown += [*axes.texts, axes.xaxis.label, *(text for place, text in ticks if low <= place <= high)]
    assert_words_stand_apart(figure, shown)
    said = [text.get_text() for text in shown]
    assert "the row is better →" in "\n".join(said)
    assert "ours, 95 % interval over seeds" in said
    assert scores.NO_INTERVAL in said, "one row was only explored"
    assert "95 % interval over sentences" not in said, "there is none"


def test_up_is_better_by_either_score_on_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = Worth(2, nll=(0.25, 0.1), bleu=(-2.0, None))
    found = {"h=1": [OnText(3_000, worse, None), OnText(6_000, worse, worse)]}
    monkeypatch.setattr(scores, "on_texts", lambda records: found)
    figure: Any = scores.draw_text_sizes([])[0]
    for axes, value in zip(figure.axes, (-0.25, -2.0), strict=True):
        by_paper, by_mean = (bars.lines[0] for bars in axes.containers)
        assert ([*by_paper.get_xdata()], [*by_paper.get_ydata()]) == ([3_000, 6_000], [value, value])
        assert ([*by_mean.get_xdata()], [*by_mean.get_ydata()]) == ([6_000], [value])


# ---- quality and cost


def test_points_by_hand(a_record: Make) -> None:
    runs = [a_record("h=1", seed, bleu=bleu, flops=2e9) for seed, bleu in ((1, 50.0), (2, 51.0), (3, 52.0))]
    base, row = points([*runs, a_record("base", bleu=60.0, flops=1e9)])
    assert (base.row, base.n, base.flops, base.mean, base.low, base.high) == ("base", 1, 1e9, 60, 60, 60)
    assert (row.n, row.flops, row.mean) == (3, 2e9, 51)
    assert row.high - row.mean == pytest.approx(4.3027 / 3**0.5, abs=1e-3)  # t of two degrees of freedom, sd 1


def test_two_seeds_have_no_interval_and_are_hollow(a_record: Make) -> None:
    two = [a_record("h=1", 1, bleu=50.0), a_record("h=1", 2, bleu=51.0)]
    three = [a_record("base", seed, bleu=60.0 + seed) for seed in (1, 2, 3)]
    found = points([*two, *three])
    assert (found[1].low, found[1].mean, found[1].high) == (50.5, 50.5, 50.5)
    two[0] = replace(two[0], cost={**two[0].cost, "flops": 2e9})
    (axes,) = draw_quality([*two, *three])[0].axes
    shown = {bar.lines[0].get_ydata()[0]: bar.lines[0] for bar in axes.containers}
    assert [shown[mean].get_markerfacecolor() for mean in (62.0, 50.5)] == [style.COLOURS[0], "white"]
    assert [bar.has_yerr for bar in axes.containers] == [True, False]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["base", "h=1"]
    assert "Hollow: fewer than three runs." in _under("cost", found, [])
    assert "Hollow" not in _under("cost", found[:1], [])
    assert _under("cost", found[1:], []).split("\n")[2] == "Hollow: fewer than three runs."


def test_one_row_is_no_comparison(a_record: Make) -> None:
    expected = r"finished runs .* of two rows that differ in cost, only of base$"
    for rows in (["base"], ["base", "h=4"]):
        with pytest.raises(ValueError, match=expected):
            draw_quality([a_record(row, 1) for row in rows])


def test_rows_of_the_bases_cost_are_left_out(a_record: Make) -> None:
    costs = {"base": 1e9, "h=1": 1.01e9, "h=4": 1.03e9, "h=16": 0.9e9}
    found = points([a_record(row, flops=flops) for row, flops in costs.items()])
    assert [point.row for point in of_other_cost(found)] == ["base", "h=16", "h=4"]
    assert len(of_other_cost(found[1:])) == 3, "nobody knows what the base costs"


def test_the_picture_says_which_rows_it_leaves_out_and_why(a_record: Make) -> None:
    costs = {"base": 1e9, "h=16": 2e9}
    found = points([a_record(row, seed, flops=flops) for row, flops in costs.items() for seed in (1, 2, 3)])
    named = "Rows bear the paper's names: h=16 (here 2)."
    same = "Not shown, for their cost is the base's to 2 %: base, h=16 (here 2)."
    bars = "Points are means over seeds, bars their 95 % t-intervals."
    assert _under("cost", found, []).split("\n") == ["cost", "", bars, named]
    assert _under("cost", found[:1], []).split("\n")[2:] == [bars]
    assert _under("cost", found[:1], found).split("\n")[2:] == [bars, same]
    assert _under("cost", found, found).split("\n")[2:] == [bars, named, same]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("P_drop=0.2", r"$P_{\mathrm{drop}}$=0.2"),
        ("eps_ls=0.0, d_k=16", r"$\epsilon_{\mathrm{ls}}$=0.0, $d_{k}$=16"),
        ("d_model=256", r"$d_{\mathrm{model}}$=256"),
        ("costs $5, d_kind, grid_k", r"costs \$5, d_kind, grid_k"),
    ],
)
def test_names_of_rows_bear_the_papers_symbols(name: str, shown: str) -> None:
    assert style.symbols(name) == shown
