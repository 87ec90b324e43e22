"""The page of the verdicts: every claim once, what was judged, and texts that stay texts."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from paper_runs import changed, paper_run, perplexity, that_counts
from printed_rows import PRINTED

from repro.claims.catalogue import CLAIMS
from repro.claims.claim import B0, H1, direction
from repro.claims.decisions import FIRST_SEED, LOOKS
from repro.claims.evidence import Evidence, needed
from repro.claims.judge import evidence_of, judge, judge_suite, suite
from repro.claims.lists import catalogue_digest
from repro.claims.simulated import worst
from repro.pages import build, claims, statements
from repro.render.markdown import markdown
from repro.render.page import Table, plain
from repro.results.frame import ResultSet
from repro.results.record import PaperNumbers, Record, path
from repro.results.resampled import Interval
from repro.results.summary import Summary

ROOT = Path(__file__).parents[2]


def some(table: str, row: str, bleu: float, position: int = 0, **other: object) -> list[Record]:
    """Runs around a BLEU, as many as count."""
    runs = []
    for seed in range(FIRST_SEED, FIRST_SEED + needed(f"{table}/{row}", LOOKS[-1])):
        found = bleu + 0.1 * (seed % 3 - 1)
        score = paper_run().scores["dev"] | {"bleu": found, **perplexity(2 - found / 100)}
        scores = {"dev": score, "test": score}
        runs.append(that_counts(paper_run(row, table, seed=seed, position=position, scores=scores, **other)))
    return runs


@pytest.fixture
def results(tmp_path: Path) -> Path:
    heads = {"hyper": changed(n_heads=1, d_k=512, d_v=512), "paper": PaperNumbers(ppl=5.29, bleu=24.9, params=None)}
    base = some("base", "base", 25.8, -1, paper=PaperNumbers(ppl=4.92, bleu=25.8, params=65.0))
    for record in [*base, *some("table3_A", "h=1", 24.9, **heads), paper_run("x | y", "other", position=0)]:
        record.save(path(tmp_path, record))
    return tmp_path


def pages(results: Path) -> dict[Path, str]:
    return build.texts(build.build_scale(ResultSet.read(results / "paper")))


def test_the_page_says_what_was_judged(results: Path) -> None:
    page = pages(results)[results / "paper" / "claims.md"]
    what, numbers = (line for line in page.split("\n") if line.startswith("| C28b "))
    assert [cell.strip() for cell in what.split("|")][-2] == "**reproduced**"
    assert "+0.89\N{NO-BREAK SPACE}\\[" in numbers
    detectable = [cell.strip() for cell in numbers.replace("\N{NO-BREAK SPACE}", " ").split("|")][-2]
    assert re.fullmatch(r"0\.\d\d \(100 %\)", detectable), (
        "a difference of BLEU, and the chance to find the printed one"
    )
    assert f"List of claims: {catalogue_digest()}." in page
    assert "| C28c " in page
    assert "not judged: too few runs that count: h=32 0 of 3" in page
    assert re.search(r" claims: reproduced \d+, .*not judged \d+\. 13 of 14 runs count\.", page)
    assert "1 begun before such lists were kept: x \\| y (seed 1)." in page
    assert "any wrong verdict about trained rows on this page to 5 %" in page
    found = worst("paper")
    assert found
    share = f"{100 * found.share:.1f} % of {found.pages:,} held one"
    assert f"of the worst ({found.truth}), drawn anew, {share} (docs/claims.md)." in page
    assert "✓ reproduced" in page


def test_a_page_tells_of_simulations_of_its_own_scale_and_claims_only(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = {"hyper": changed(n_heads=1, d_k=512, d_v=512), "paper": PaperNumbers(ppl=5.29, bleu=24.9, params=None)}
    base = some("base", "base", 25.8, -1, paper=PaperNumbers(ppl=4.92, bleu=25.8, params=65.0))
    runs = evidence_of([*base, *some("table3_A", "h=1", 24.9, **heads)])
    judged = judge(runs)
    assert "simulations of them show; none is of this scale" in claims.promise(judged, runs, "single_gpu")
    assert "simulated on the claims of the paper" in claims.promise(judged, runs, "paper", statements.OF_TEXTS)
    assert "Pages were simulated under several known truths: of the worst (" in claims.promise(
        judged, runs, "paper-en-fr"
    )
    monkeypatch.setattr("repro.claims.simulated.catalogue_digest", lambda: "another list")
    assert "none is of this scale and this list of claims" in claims.promise(judged, runs, "paper")


def test_the_rates_that_pages_tell_are_those_of_the_worst_truth_on_other_pages() -> None:
    record = json.loads((ROOT / "benchmarks" / "records" / "verdicts.json").read_bytes())
    for scale in ("laptop", "captions", "paper"):
        found = worst(scale)
        assert found
        wrong = {line["world"]: line["wrong"] for line in record["lines"] if line["scale"].split("-")[0] == scale}
        [anew] = [line for line in record["anew"] if line["scale"].split("-")[0] == scale]
        assert wrong[found.truth] == max(wrong.values())
        assert (found.truth, found.share, found.pages) == (anew["world"], anew["wrong"], anew["pages"])
        assert found.pages >= 5 * record["lines"][0]["pages"], "enough of them to tell 0.045 from 0.06"


def test_every_claim_has_one_verdict_on_the_page(results: Path) -> None:
    page = build.build_scale(ResultSet.read(results / "paper"))[results / "paper" / "claims"].page
    tables = [block.columns for block in page.blocks if isinstance(block, Table)]
    of_verdicts = [columns for columns in tables if "verdict" in [column.heading for column in columns]]
    named = [plain(name) for columns in of_verdicts for name in columns[0].texts]
    assert sorted(named) == sorted(one.id for one in CLAIMS)


def test_tables_of_the_page_are_whole(results: Path) -> None:
    page = pages(results)[results / "paper" / "claims.md"]
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    rows: list[int] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append(0)
        elif token.type in ("th_open", "td_open"):
            rows[-1] += 1
        elif token.type == "table_close":
            assert len({*rows}) == 1
            assert rows[0] <= 10
            rows.clear()


def test_a_claim_about_the_best_of_several_rows_has_no_numbers_to_show() -> None:
    chosen = next(one for one in CLAIMS if one.id == "C28e")
    heads = [some(table, row, 25.0) for table, _, row in (name.partition("/") for name in chosen.rows)]
    [one] = judge(evidence_of([record for of in heads for record in of]), claims=[chosen])
    assert one.found
    assert list(claims.claim_numbers([one], {})) == []


def test_the_file_for_machines_has_every_claim(results: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(pages(results)[results / "paper" / "claims.csv"])))
    assert list(dict.fromkeys(line["claim"] for line in lines)) == [one.id for one in CLAIMS]
    bleu = next(line for line in lines if line["claim"] == "C28b" and line["endpoint"] == "BLEU")
    assert float(bleu["value"]) == pytest.approx(0.9, abs=0.02)
    assert (bleu["n"], bleu["outcome"], bleu["rows"]) == ("8 5", "reproduced", "base/base table3_A/h=1")


def test_the_file_for_machines_has_the_intervals_over_sentences_beside_those_over_seeds(results: Path) -> None:
    judged = judge(evidence_of(ResultSet.read(results / "paper").everything))
    over = {("C28b", "BLEU"): Interval(value=0.9, low=0.25, high=1.5, n_sentences=7)}
    lines = csv.DictReader(io.StringIO(claims.sheet(judged, over)))
    found = {(line["claim"], line["endpoint"]): (line["sentences_low"], line["sentences_high"]) for line in lines}
    assert found.pop(("C28b", "BLEU")) == ("0.25", "1.5")
    assert {*found.values()} == {("", "")}


def test_no_record_no_page(tmp_path: Path) -> None:
    assert pages(tmp_path) == {}


def test_text_on_the_page_is_text() -> None:
    named = direction("C99", "1", "a | b <script> *c*", B0, H1, scale="smoke")
    runs = Summary(scale="x_y|", claim="", n=1, n_rows=1, hours=1.0, rows_here=("a|b (here <i>)",))
    page = markdown(claims.page(judge_suite(suite(NOTHING), [named]), NOTHING, runs))
    assert r"a \| b &lt;script&gt; \*c\*" in page
    assert r"at scale x_y\|" in page
    assert r"At this scale they are a\|b (here &lt;i&gt;)." in page


def test_where_nothing_is_left_out_nothing_is_said_to_be() -> None:
    runs = Summary(scale="paper", claim="", n=3, n_rows=1, hours=1.0, rows_here=())
    text = markdown(claims.page(judge(NOTHING), NOTHING, runs))
    assert "0 of 3 runs count." in text
    assert "Exploration" not in text
    assert "Rows keep the paper's names" not in text
    assert "never of its size" not in text


def test_below_the_papers_scale_the_page_says_what_a_verdict_is_not() -> None:
    found = small([*some("base", "base", 25.8, -1), *some("table3_A", "h=1", 24.9)])
    text = markdown(claims.page(judge(found), found, LAPTOP))
    assert "a verdict speaks of the sign of a difference, never of its size" in text
    assert "in brackets the chance" not in text


def test_a_page_that_judges_no_trained_row_promises_nothing_of_them() -> None:
    found = small(some("base", "base", 25.8, -1))
    text = markdown(claims.page(judge(found), found, LAPTOP))
    assert "any wrong verdict" not in text
    assert "never of its size" not in text
    assert "Nothing about trained rows is judged here: no claim has all the runs that it needs." in text


def test_an_incomplete_page_says_how_far_it_is_and_that_verdicts_may_change() -> None:
    # h=1 has the seeds of both looks, N=2 those of the first, d_k=16 too few; others have none
    base, heads = some("base", "base", 25.8, -1), some("table3_A", "h=1", 24.9)
    depth, keys = some("table3_C", "N=2", 20.0)[:4], some("table3_B", "d_k=16", 20.0)[:2]
    chosen = [one for one in CLAIMS if one.id in ("C28b", "C29a", "C30a", "C28c")]  # the last needs a larger scale
    found = small([*base, *heads, *depth, *keys])
    text = markdown(claims.page(judge(found, claims=chosen), found, LAPTOP))
    assert (
        "The page is incomplete: of the 4 rows that this scale may judge 2 have all their seeds (5; the base 8), 1 "
        "those of the first look (3), 1 too few or none. Verdicts may change as rows come, since the spread between "
        "seeds is pooled over those that are there."
    ) in text
    whole = small([*base, *heads])
    page = markdown(claims.page(judge(whole, claims=chosen[:1]), whole, LAPTOP))
    assert chosen[0].id == "C28b"
    assert "incomplete" not in page


NOTHING = Evidence(records=(), apart=())
LAPTOP = Summary(scale="laptop", claim="", n=0, n_rows=0, hours=1.0, rows_here=())


def small(records: list[Record]) -> Evidence:
    """At a smaller scale, with what the paper prints for their rows."""
    printed = [PRINTED[f"{record.table}/{record.row}"] for record in records]
    made = zip(records, printed, strict=True)
    return evidence_of([replace(record, scale="laptop", paper=paper) for record, paper in made])
