"""What counts as evidence: each run that does not is named with the reason, and one run never counts twice."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from claims.test_judge import of, some
from paper_runs import changed, paper_run, that_counts

from repro.claims import evidence
from repro.claims.catalogue import B0, H1
from repro.claims.evidence import FILE, Evidence, Published, evidence_of, read_published, why_apart
from repro.claims.judge import judge
from repro.model.ablations.norms import PreNorm
from repro.model.config import BASE, written
from repro.model.rivals.recurrent import Simple
from repro.model.transformer import Transformer
from repro.results.comparable import differences
from repro.results.frame import Listed, ResultSet
from repro.results.provenance import provenance
from repro.results.record import PaperNumbers, Record

PRE_NORM = partial(Transformer, around=PreNorm)
SHOWN: Any = {
    "badge": "L2", "against": [], "order": "ab", "plan": "ab", "weights": "", "replayed": 0, "repeated_lines": 0,
}  # fmt: skip
NO_WEIGHTS = {**SHOWN, "order": "seed 11", "weights": None}


def run(seed: int, row: str = "h=1", table: str = "table3_A", **other: Any) -> Record:
    """One that counts."""
    return replace(that_counts(paper_run(row, table, seed=seed)), **other)


def seeds(found: Evidence) -> list[int]:
    return [record.seed for record in found.records]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"claims": None}, "begun before such lists were kept"),
        ({"claims": "f" * 16}, "begun under a list of claims that is not kept"),
        ({"stamp": {**paper_run().stamp, "dirty": True}}, "of uncommitted code"),
        ({"determinism": None}, "not shown to have read what was planned"),
        ({"determinism": {**SHOWN, "badge": None}}, "not shown to have read what was planned"),
        ({"cost": {**paper_run().cost, "steps": 99_999}}, "of a different number of updates than planned"),
        ({"determinism": NO_WEIGHTS}, "finished without a digest of their weights, by which copies are known"),
    ],
)
def test_what_does_not_count_is_set_apart_by_name(changed: dict[str, Any], why: str) -> None:
    # the last of three seeds: the two before it count
    found = evidence_of([run(9), run(10), replace(run(11), **changed)])
    assert seeds(found) == [9, 10]
    assert [(one.record.seed, one.why) for one in found.apart] == [(11, why)]


def test_seeds_that_were_looked_at_before_do_not_count_nor_any_after_a_gap() -> None:
    found = evidence_of([run(seed) for seed in range(6, 12)])
    assert seeds(found) == [9, 10, 11]
    [why] = why_apart(found.apart)
    assert why.endswith("looked at when scales, claims and analysis were chosen: h=1 (seed 6, 7, 8)")
    found = evidence_of([run(12), run(9), run(10), run(13)])
    assert seeds(found) == [9, 10]
    assert why_apart(found.apart) == ["2 after a gap in the seeds, which count from 9 on: h=1 (seed 12, 13)"]
    # who throws a seed away that displeases keeps only those before it
    assert seeds(evidence_of([run(9), replace(run(10), claims=None), run(11), run(12)])) == [9]


def test_seeds_that_are_no_repetitions_of_the_newest_do_not_count() -> None:
    bf16 = {**run(9).settings, "precision": "bf16"}
    old = [replace(run(seed), settings=bf16, stamp={**run(seed).stamp, "started": "a"}) for seed in (9, 10)]
    new = [replace(run(seed), stamp={**run(seed).stamp, "started": "b"}) for seed in (11, 12)]
    base = run(9, "base", "base", stamp={**run(9).stamp, "n_threads": 2})  # another row, which nobody compares with
    found = evidence_of([base, *old, *new])
    assert [(record.row, record.seed) for record in found.records] == [("base", 9)]
    assert why_apart(found.apart)[0] == "2 unlike the newest run of their row in precision: h=1 (seed 9, 10)"


def test_a_run_has_the_hyper_parameters_that_its_row_makes() -> None:
    of_row = Listed(0, PaperNumbers(ppl=None, bleu=None, params=None), None, written({**vars(BASE), "n_heads": 1}))
    right, wrong = run(9, hyper=changed(n_heads=1)), run(10, hyper=changed(n_heads=2))
    found = evidence_of([right, wrong], {("table3_A", "h=1"): of_row})
    assert seeds(found) == [9]
    assert found.apart[0].why == "with hyper-parameters that differ from their row's"
    unknown = evidence_of([right], {("table3_A", "h=4"): of_row})
    assert unknown.apart[0].why == "of rows that their experiment does not have"
    assert seeds(evidence_of([right], {("table3_A", "h=1"): of_row._replace(here=None)})) == [9]


def test_a_seed_copied_as_several_counts_not_even_once() -> None:
    copied = replace(run(9), seed=10, run="0" * 16)  # another name, the same weights
    found = evidence_of([run(9), copied])
    assert not found.records
    weights = run(9).determinism["weights"][:16]  # type: ignore[index]
    assert [one.why for one in found.apart] == [f"with the same weights {weights}, so copies of one run"] * 2
    renamed = replace(run(9), determinism={**SHOWN, "weights": "others"}, seed=10)
    assert [one.why[:18] for one in evidence_of([run(9), renamed]).apart] == ["with the same run "] * 2
    as_row = replace(run(9), row="h=2", hyper=changed(n_heads=2))
    assert seeds(evidence_of([run(9), as_row, run(10)])) == []  # and after the gap nothing counts
    in_two_tables = replace(run(9), table="mine", row="one head")
    assert len(evidence_of([run(9), in_two_tables]).records) == 2
    nothing: Any = {"status": "diverged", "scores": dict.fromkeys(("dev", "test"), dict.fromkeys(run(9).scores["dev"]))}
    without_weights = [run(seed, determinism={**SHOWN, "weights": None}, **nothing) for seed in (9, 10)]
    assert seeds(evidence_of(without_weights)) == [9, 10]


def ordered(seed: int, row: str, order: str) -> Record:
    shown: Any = {**run(seed, row).determinism, "order": order}  # type: ignore[dict-item]
    return run(seed, row, determinism=shown)


def test_runs_in_another_order_than_their_seed_or_in_that_of_two_settle_nothing() -> None:
    rows = [ordered(seed, row, f"o{seed}") for seed in (9, 10) for row in ("h=1", "h=4", "h=16")]
    assert not evidence_of(rows).apart
    swapped = [*rows[:-1], ordered(10, "h=16", "o9")]
    [why] = why_apart(evidence_of(swapped).apart)
    assert why == "1 in another order than the other rows of their seed: h=16 (seed 10)"
    two = [ordered(9, "h=1", "o9"), ordered(9, "h=4", "o10")]
    assert len(evidence_of(two).apart) == 2, "nobody can tell which is which"
    longer = replace(ordered(9, "h=16", "another"), hyper=changed(steps=300_000))
    shown: Any = {**longer.determinism, "weights": "others"}
    longer = replace(longer, cost={**longer.cost, "steps": 300_000}, row="big", run="0" * 16, determinism=shown)
    assert not evidence_of([*rows, longer]).apart, "as many updates have an order of their own"
    same = [ordered(seed, row, "o9") for seed in (9, 10) for row in ("h=1", "h=4")]
    [why] = why_apart(evidence_of(same).apart)
    assert why == "4 of seeds that have one order of the data, 9, 10: h=1 (seed 9, 10), h=4 (seed 9, 10)"


def test_runs_of_published_verdicts_count_whatever_their_seed_and_list() -> None:
    older = replace(run(4), claims=None)
    found = evidence_of([older, run(9)], before=Published(runs=frozenset({older.run})))
    assert ([one.seed for one in found.published], [one.seed for one in found.fresh]) == ([4], [9])
    assert not found.apart
    assert {row: [one.seed for one in of] for row, of in found.explored.items()} == {"table3_A/h=1": [4]}


def test_what_rows_differ_in_besides_their_own_numbers() -> None:
    base, heads = run(9, "base", "base"), [run(seed, hyper=changed(n_heads=1)) for seed in (9, 10)]
    scored: Any = {**base.scores, "test": {**base.scores["dev"], "bleu_published_signature": "tok:none"}}
    others: dict[str, dict[str, Any]] = {
        "language pair": {"pair": "en-fr"},
        "text": {"corpus": {**base.corpus, "sha256": "ff"}},
        "threads": {"stamp": {**base.stamp, "n_threads": 2}},
        # of one of a row's seeds alone; test is what Table 2 and F1 are judged on
        "scorer": {"scores": scored},
        "sentences of test": {"corpus": {**base.corpus, "n_test": 500}},
    }
    assert evidence.unlike({B0: [base], "x": heads}) == []
    for name, other in others.items():
        of_first = name in ("text", "threads")  # what the seeds of a cell share is compared by the first
        one, two = (replace(run, **other) if of_first == (run is heads[0]) else run for run in heads)
        assert evidence.unlike({B0: [base], "x": [one, two]}) == [name]


def test_a_row_with_a_system_of_its_own_is_of_the_same_world_as_the_base() -> None:
    # by the stamps that such runs have, not by made-up ones
    def stamped(system: Any) -> Any:
        return {**run(9).stamp, **{name: of for name, of in provenance(system=system).items() if "fingerprint" in name}}

    base, rival, variant = (
        replace(run(9), stamp=stamped(system), system=system and f"{system}") for system in (None, Simple, PRE_NORM)
    )
    assert rival.stamp["fingerprint"] != base.stamp["fingerprint"]
    assert evidence.unlike({B0: [base], "ladder/simple": [rival]}) == []
    assert evidence.unlike({"ladder/simple": [rival], "lab_parts/pre-norm": [variant]}) == []
    # but it stands in no cell with another system's, nor with what its own files were before
    assert differences(base, rival) == ["code of its system", "system"]
    earlier: Any = {**rival.stamp, "fingerprint": "ab", "system_fingerprint": "cd"}
    assert differences(rival, replace(rival, stamp=earlier)) == ["code of its system"]
    shared: Any = {**rival.stamp, "shared_fingerprint": "ab"}
    assert evidence.unlike({B0: [base], "ladder/simple": [replace(rival, stamp=shared)]}) == ["deciding code"]


def test_many_rows_are_counted() -> None:
    for n, said in ((6, ": 6 rows, seed 1"), (5, "h=4 (seed 1), h=5 (seed 1)")):
        found = evidence_of([run(1, f"h={h}") for h in range(1, n + 1)])
        assert why_apart(found.apart)[0].endswith(said)


# Verdicts of before


ROOT = Path(__file__).parents[2]


def older(row: str, bleu: float) -> list[Record]:
    """Runs with seeds 4 to 8."""
    made = []
    for one in some(row, bleu):
        shown: Any = {**(one.determinism or {}), "order": f"older {one.seed}", "weights": f"older {one.run}"}
        made.append(replace(one, seed=one.seed - 5, claims="a" * 16, run=one.run[::-1], determinism=shown))
    return made


@pytest.fixture
def runs() -> list[Record]:
    return [*older(B0, 25.8), *older(H1, 14.9)]


def note(folder: Path, runs: list[Record]) -> None:
    ids: dict[str, dict[str, str]] = {}
    for run in runs:
        ids.setdefault(f"{run.table}/{run.row}", {})[str(run.seed)] = run.run
    content = {"runs": ids, "verdicts": {"C28b": {"verdict": "undetermined", "reason": "as it was"}}}
    (folder / FILE).write_text(json.dumps(content))


def test_they_stand_until_fresh_seeds_take_their_place(tmp_path: Path, runs: list[Record]) -> None:
    assert read_published(tmp_path, runs) == evidence.NOTHING_PUBLISHED
    note(tmp_path, runs)
    published = read_published(tmp_path, runs)
    one = of(judge(evidence_of(runs, before=published)), "C28b")
    assert (one.verdict, one.reason, one.explored) == ("undetermined", "as it was", "reproduced")
    assert one.found[1].value == pytest.approx(10.9, abs=0.1)
    void = read_published(tmp_path, runs[1:])
    assert void.void == f"The verdicts in {FILE} are void: run {runs[0].run} is missing (seed 4 of base/base)"
    one = of(judge(evidence_of(runs[1:], before=void)), "C28b")
    assert (one.verdict, one.reason) == ("not judged", void.void)
    records = [*runs, *some(B0, 25.8), *some(H1, 24.9)]
    one = of(judge(evidence_of(records, before=published)), "C28b")
    assert (one.verdict, one.explored) == ("reproduced", None)


def test_a_fresh_run_may_take_the_place_of_one_of_the_base_whose_seed_is_judged_anew(
    tmp_path: Path, runs: list[Record]
) -> None:
    old = replace(some(B0, 25.8)[0], claims="a" * 16, run="f" * 16)
    note(tmp_path, [*runs, old])
    fresh = some(B0, 25.8)
    assert read_published(tmp_path, runs).void
    published = read_published(tmp_path, [*runs, *fresh])
    assert not published.void
    again = replace(fresh[0], run=old.run)  # made again under the list of today, from code that was not changed
    found = evidence_of([*runs, again, *fresh[1:]], before=published)
    assert [one.seed for one in found.fresh] == [9, 10, 11, 12, 13]


@pytest.mark.parametrize(("scale", "n"), [("laptop", 37), ("captions-bf16", 24)])
def test_those_of_the_repository_hold(scale: str, n: int) -> None:
    found = ResultSet.read(ROOT / "results" / scale)
    published = read_published(found.folder, found.everything)
    assert (published.void, len(published.verdicts)) == ("", n)
