"""What counts as evidence: each run that does not is named with the reason, and one run never counts twice."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from paper_runs import changed, paper_run, that_counts

from repro.claims.claim import B0
from repro.claims.decisions import BASE_SEEDS, FIRST_SEED, LOOKS
from repro.claims.evidence import Evidence, gather, unlike, why_apart
from repro.model.ablations.norms import PreNorm
from repro.model.config import BASE, written
from repro.model.rivals.recurrent import Simple
from repro.model.transformer import Transformer
from repro.results.frame import Listed
from repro.results.kinds import differences
from repro.results.provenance import provenance
from repro.results.record import PaperNumbers, Record

LIST = "0123456789abcdef"
PRE_NORM = partial(Transformer, around=PreNorm)
SHOWN: Any = {
    "badge": "L2", "against": [], "order": "ab", "plan": "ab", "weights": "", "replayed": 0, "repeated_lines": 0,
}  # fmt: skip


def run(seed: int, row: str = "h=1", table: str = "table3_A", **other: Any) -> Record:
    """One that counts."""
    return replace(that_counts(paper_run(row, table, seed=seed), LIST), **other)


def seeds(evidence: Evidence) -> list[int]:
    return [record.seed for record in evidence.records]


def test_the_first_declared_seeds_count() -> None:
    found = gather([run(6), run(4), run(5)], {LIST})
    assert seeds(found) == [4, 5, 6]
    assert not found.apart


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        (lambda record: replace(record, claims=None), "begun before such lists were kept"),
        (lambda record: replace(record, claims="f" * 16), "begun under a list of claims that is not kept"),
        (
            lambda record: replace(record, stamp={**record.stamp, "dirty": True}),
            "of uncommitted code",
        ),
        (lambda record: replace(record, determinism=None), "not shown to have read what was planned"),
        (
            lambda record: replace(record, determinism={**record.determinism, "badge": None}),
            "not shown to have read what was planned",
        ),
        (
            lambda record: replace(record, cost={**record.cost, "steps": record.cost["steps"] - 1}),
            "of a different number of updates than planned",
        ),
        (
            lambda record: replace(record, determinism={**record.determinism, "weights": None}),
            "finished without a digest of their weights, by which copies are known",
        ),
    ],
    ids=["no list", "another list", "dirty", "no badge kept", "no badge", "stopped early", "no weights"],
)
def test_what_does_not_count_is_set_apart_by_name(spoiled: Callable[[Record], Record], why: str) -> None:
    # the last of three seeds: the two before it count
    found = gather([run(4), run(5), spoiled(run(6))], {LIST})
    assert seeds(found) == [4, 5]
    assert [(one.record.seed, one.why) for one in found.apart] == [(6, why)]


def test_seeds_that_were_looked_at_before_do_not_count() -> None:
    found = gather([run(seed) for seed in range(1, 7)], {LIST})
    assert seeds(found) == [4, 5, 6]
    assert why_apart(found.apart) == [
        f"3 of seeds below {FIRST_SEED}, whose runs were looked at when scales and claims were chosen: "
        "h=1 (seeds 1 to 3)"
    ]


def test_after_a_gap_nothing_counts() -> None:
    found = gather([run(4), run(5), run(7), run(8)], {LIST})
    assert seeds(found) == [4, 5]
    assert why_apart(found.apart) == ["2 after a gap in the seeds, which count from 4 on: h=1 (seeds 7 to 8)"]


def test_a_run_set_apart_leaves_a_gap() -> None:
    # who throws a seed away that displeases keeps only those before it
    found = gather([run(4), replace(run(5), claims=None), run(6), run(7), run(8)], {LIST})
    assert seeds(found) == [4]


def test_seeds_that_are_no_repetitions_of_the_newest_do_not_count() -> None:
    bf16 = {**run(4).settings, "precision": "bf16"}
    old = [replace(run(seed), settings=bf16, stamp={**run(seed).stamp, "started": "a"}) for seed in (4, 5)]
    new = [replace(run(seed), stamp={**run(seed).stamp, "started": "b"}) for seed in (6, 7)]
    base = run(4, "base", "base", stamp={**run(4).stamp, "n_threads": 2})  # another row, which nobody compares with
    found = gather([base, *old, *new], {LIST})
    assert [(record.row, record.seed) for record in found.records] == [("base", 4)]
    assert why_apart(found.apart)[0] == "2 unlike the newest run of their row in precision: h=1 (seeds 4 to 5)"


def test_a_run_has_the_hyper_parameters_that_its_row_makes() -> None:
    of_row = Listed(0, PaperNumbers(ppl=None, bleu=None, params=None), None, written({**vars(BASE), "n_heads": 1}))
    right, wrong = run(4, hyper=changed(n_heads=1)), run(5, hyper=changed(n_heads=2))
    found = gather([right, wrong], {LIST}, {("table3_A", "h=1"): of_row})
    assert seeds(found) == [4]
    assert found.apart[0].why == "with hyper-parameters that differ from their row's"
    unknown = gather([right], {LIST}, {("table3_A", "h=4"): of_row})
    assert unknown.apart[0].why == "of rows that their experiment does not have"
    assert seeds(gather([right], {LIST}, {("table3_A", "h=1"): of_row._replace(here=None)})) == [4]


def test_a_seed_copied_as_several_counts_not_even_once() -> None:
    copied = replace(run(4), seed=5, run="0" * 16)  # another name, the same weights
    found = gather([run(4), copied], {LIST})
    assert not found.records
    weights = run(4).determinism["weights"][:16]  # type: ignore[index]
    assert [one.why for one in found.apart] == [f"with the same weights {weights}, so copies of one run"] * 2
    renamed = replace(run(4), determinism={**SHOWN, "weights": "others"}, seed=5)
    assert [one.why[:18] for one in gather([run(4), renamed], {LIST}).apart] == ["with the same run "] * 2
    as_row = replace(run(4), row="h=2", hyper=changed(n_heads=2))
    assert seeds(gather([run(4), as_row, run(5)], {LIST})) == []  # and after the gap nothing counts


def test_copies_that_hide_their_weights_do_not_reach_the_second_look() -> None:
    # three runs, and one of them twice more under other names: the page would say n = 5
    hidden: Any = {**SHOWN, "weights": None}
    copies = [replace(run(4), seed=seed, run=f"{seed}" * 16, determinism=hidden) for seed in (7, 8)]
    found = gather([run(4), run(5), run(6), *copies], {LIST})
    assert seeds(found) == [4, 5, 6]
    assert why_apart(found.apart) == [
        "2 finished without a digest of their weights, by which copies are known: h=1 (seeds 7 to 8)"
    ]


def test_two_tables_may_show_one_run() -> None:
    again = replace(run(4), table="mine", row="one head")
    assert len(gather([run(4), again], {LIST}).records) == 2


def test_runs_without_weights_are_no_copies_of_each_other() -> None:
    nothing: Any = dict.fromkeys(run(4).scores["dev"])
    diverged = [
        run(seed, determinism={**SHOWN, "weights": None}, status="diverged", scores={"dev": nothing, "test": nothing})
        for seed in (4, 5)
    ]
    assert seeds(gather(diverged, {LIST})) == [4, 5]


def test_a_look_takes_the_declared_number_of_the_base_and_of_the_others() -> None:
    base = [run(seed, "base", "base") for seed in range(4, 4 + BASE_SEEDS + 2)]
    found = gather([*base, *(run(seed) for seed in range(4, 8))], {LIST})
    first, second = (found.at(look) for look in LOOKS)
    assert {row: [record.seed for record in of] for row, of in first.items()} == {
        B0: [*range(4, 12)],
        "table3_A/h=1": [4, 5, 6],
    }
    assert {*second} == {B0}
    assert found.count("table3_A/h=1") == 4
    short = gather([*base[: BASE_SEEDS - 1], *(run(seed) for seed in range(4, 9))], {LIST})
    assert {*short.at(LOOKS[1])} == {"table3_A/h=1"}


def test_what_rows_differ_in_besides_their_own_numbers() -> None:
    base, heads = run(4, "base", "base"), run(4, hyper=changed(n_heads=1))
    assert unlike({B0: [base], "table3_A/h=1": [heads]}) == []
    assert unlike({B0: [base], "x": [replace(heads, pair="en-fr")]}) == ["language pair"]
    text: Any = {**heads.corpus, "sha256": "ff"}
    assert unlike({B0: [base], "x": [replace(heads, corpus=text)]}) == ["text"]
    threads: Any = {**heads.stamp, "n_threads": 2}
    assert unlike({B0: [base], "x": [replace(heads, stamp=threads)]}) == ["threads"]
    scored: Any = {split: {**heads.scores["dev"], "bleu_signature": "tok:none"} for split in ("dev", "test")}
    assert unlike({B0: [base], "x": [replace(heads, scores=scored)]}) == ["scorer"]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_rows_are_compared_on_the_same_sentences_scored_alike(split: str) -> None:
    # also where one of a row's seeds alone was scored otherwise; test is what Table 2 and F1 are judged on
    base, heads = run(4, "base", "base"), [run(seed, hyper=changed(n_heads=1)) for seed in (4, 5)]
    assert unlike({B0: [base], "x": heads}) == []
    scored: Any = {**base.scores, split: {**base.scores["dev"], "bleu_published_signature": "tok:none"}}
    assert unlike({B0: [base], "x": [heads[0], replace(heads[1], scores=scored)]}) == ["scorer"]
    fewer: Any = {**base.corpus, f"n_{split}": 500}
    assert unlike({B0: [base], "x": [heads[0], replace(heads[1], corpus=fewer)]}) == [f"sentences of {split}"]


def test_a_row_with_a_system_of_its_own_is_of_the_same_world_as_the_base() -> None:
    # by the stamps that such runs have, not by made-up ones
    def stamped(system: Any) -> Any:
        return {**run(4).stamp, **{name: of for name, of in provenance(system=system).items() if "fingerprint" in name}}

    base, rival, variant = (
        replace(run(4), stamp=stamped(system), system=system and f"{system}") for system in (None, Simple, PRE_NORM)
    )
    assert rival.stamp["fingerprint"] != base.stamp["fingerprint"]
    assert unlike({B0: [base], "ladder/simple": [rival]}) == []
    assert unlike({"ladder/simple": [rival], "lab_parts/pre-norm": [variant]}) == []
    # but it stands in no cell with another system's, nor with what its own files were before
    assert differences(base, rival) == ["code of its system", "system"]
    earlier: Any = {**rival.stamp, "fingerprint": "ab", "system_fingerprint": "cd"}
    assert differences(rival, replace(rival, stamp=earlier)) == ["code of its system"]
    shared: Any = {**rival.stamp, "shared_fingerprint": "ab"}
    assert unlike({B0: [base], "ladder/simple": [replace(rival, stamp=shared)]}) == ["deciding code"]


def test_many_rows_are_counted() -> None:
    found = gather([run(1, f"h={h}") for h in (1, 2, 4, 8, 16, 32)], {LIST})
    assert why_apart(found.apart)[0].endswith(": 6 rows, seed 1")
    five = [run(seed, f"h={h}") for seed in (3, 1) for h in (1, 2, 4, 8, 16)]
    assert why_apart(gather(five, {LIST}).apart)[0].endswith("h=8 (seeds 1, 3), h=16 (seeds 1, 3)")
