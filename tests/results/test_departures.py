"""Where runs leave the paper's recipe: each rule is kept by the paper's own settings and broken by another's."""

from typing import Any

import pytest
from paper_runs import PAPER_SETTINGS, changed, paper_run, perplexity

from repro.results.departures import departures, rules
from repro.results.record import Record
from repro.runs.table import Parsing

CORPUS = paper_run().corpus
REST_OF_SEARCH = "alpha 0.6, at most input + 50"
PARSER = changed(n_layers=4, d_model=1024, d_k=128, d_v=128)


def parsed(**other: Any) -> Record:
    """A run of Table 4 as the paper describes it."""
    task = Parsing(silver=other.get("corpus", {}).get("name", "").endswith("_silver"))
    keys = {f"{name}{end}" for name in task.facts["scores"] for end in ("", "_signature")}
    scores = perplexity(0.5) | {key: "rules" if key.endswith("_signature") else 1.5 for key in keys}
    fields: dict[str, Any] = {
        "pair": "en-tree",
        "task": task.facts,
        "corpus": CORPUS | {"name": "wsj", "n_train": 39_832, "n_dev": 1_700, "n_test": 2_416},
        "tokenizer": {"sha256": "cd", "size": 16_384},
        "hyper": PARSER,
        "settings": PAPER_SETTINGS | task.search.settings,
        "scores": {"dev": scores, "test": scores},
    }
    return paper_run("WSJ only", "table4", **{**fields, **other})


OF_PARSER: list[tuple[str, dict[str, Any], str]] = [
    ("treebank", {"corpus": CORPUS | {"name": "craft", "n_train": 18_917}}, "craft, 18,917 sentences"),
    ("tokens of trees", {"tokenizer": {"sha256": "cd", "size": 1_500}}, "1,500"),
    ("size of the parser", {"hyper": changed(n_layers=2, d_model=1024)}, "N 2, d_model 1024"),
    ("search", {"settings": PAPER_SETTINGS}, f"beam 4, {REST_OF_SEARCH}"),
]


def test_the_papers_own_run_departs_from_nothing() -> None:
    runs = [paper_run(), paper_run("h=1", "table3_A", hyper=changed(n_heads=1, d_k=512, d_v=512))]
    assert departures([*runs, parsed()]) == []
    french = paper_run(
        "base en-fr",
        "table2",
        pair="en-fr",
        corpus=CORPUS | {"n_train": 35_800_000},
        tokenizer={"sha256": "cd", "size": 32_000},
        hyper=changed(average=5),
    )
    assert departures([french]) == []


OF_TRANSLATION: list[tuple[str, dict[str, Any], str]] = [
    ("data", {"corpus": CORPUS | {"name": "multi30k", "n_train": 29_000}}, "multi30k en-de, 29,000 pairs"),
    ("test set", {"corpus": CORPUS | {"n_test": 2_737}}, "2,737 lines of it"),
    ("cleaning", {"settings": PAPER_SETTINGS | {"rules": "fairseq"}}, "pairs left out by fairseq"),
    ("sub-words", {"tokenizer": {"sha256": "cd", "size": 10_000}}, "10,000"),
    ("system", {"system": "rivals.Recurrent"}, "Recurrent"),
    ("gradient", {"settings": PAPER_SETTINGS | {"gradient_norm": 1.0}}, "cut to norm 1"),
    ("size of the base model", {"hyper": changed(n_layers=3)}, "N 3, d_model 512, d_ff 2,048, h 8"),
    ("dropout of the base model", {"hyper": changed(dropout=0.2)}, "0.2"),
    ("label smoothing", {"hyper": changed(label_smoothing=0.0)}, "0"),
    ("updates of the base model", {"hyper": changed(steps=25_000)}, "25,000"),
    ("tokens of an update", {"settings": PAPER_SETTINGS | {"batch_tokens": 2_048}}, "at most 2,048 of each side"),
    ("schedule", {"hyper": changed(warmup=16_000)}, "the printed formula with a warm-up of 16,000"),
    ("schedule", {"hyper": changed(lr_factor=0.5)}, "the printed formula with a warm-up of 4,000, times 0.5"),
    ("schedule", {"hyper": changed(warms_up=False)}, "no warm-up, the rate at the peak of one of 4,000"),
    ("attention dropout", {"hyper": changed(attention_dropout=0.1)}, "0.1 of the weights"),
    ("complete training", {"cost": paper_run().cost | {"steps": 99}}, "99 of 100,000 updates"),
    ("averaging", {"hyper": changed(average=5)}, "5 checkpoints"),
    ("search", {"settings": PAPER_SETTINGS | {"beam": 5, "engine": "x"}}, f"beam 5, {REST_OF_SEARCH}, by x"),
    ("precision", {"settings": PAPER_SETTINGS | {"precision": "bf16"}}, "bf16"),
]  # fmt: skip


def test_what_departs_is_named() -> None:
    for cases, made, row in ((OF_PARSER, parsed, "WSJ only"), (OF_TRANSLATION, paper_run, "base")):
        for name, other, here in cases:
            found = {departure.name: departure.here for departure in departures([made(**other)])}
            assert found[name] == {here: [row]}
            assert set(found) <= {name, "complete training"}  # fewer steps are fewer updates too
    broken = {name for name, *_ in (*OF_PARSER, *OF_TRANSLATION)}
    below = {f"{what} of the big model" for what in ("dropout", "size", "updates")}
    assert broken | below == {rule.name for rule in rules(paper_run())}


def test_base_and_big_drop_out_as_the_paper_says() -> None:
    for row, pair, dropout, breaks in (
        ("base en-fr", "en-fr", 0.3, ["dropout of the base model"]),
        ("big en-de", "en-de", 0.1, ["dropout of the big model"]),
        ("big en-fr", "en-fr", 0.1, []),  # "used dropout rate P_drop = 0.1, instead of 0.3": section 6.1
        ("big en-fr", "en-fr", 0.3, ["dropout of the big model"]),
        ("big en-it", "en-it", 0.3, ["dropout of the big model"]),  # of which the paper says nothing
    ):
        found = departures([paper_run(row, "table2", pair=pair, hyper=changed(dropout=dropout))])
        assert [departure.name for departure in found if departure.name.startswith("dropout")] == breaks


BIG: dict[str, Any] = {"d_model": 1_024, "d_ff": 4_096, "n_heads": 16, "steps": 300_000, "dropout": 0.3}


@pytest.mark.parametrize(
    ("row", "table", "average"), [("base en-de", "table2", 5), ("big en-de", "table2", 20), ("big", "table3_big", 1)]
)
def test_the_models_of_table_2_and_big_are_held_against_the_whole_recipe(row: str, table: str, average: int) -> None:
    kind = row.split(" ")[0]
    kept = {"average": average} | (BIG if kind == "big" else {})
    steps = kept.get("steps", 100_000)

    def found(**other: Any) -> dict[str, list[str]]:
        run = paper_run(row, table, hyper=changed(**kept | other), cost=paper_run().cost | {"steps": steps})
        return {departure.name: [*departure.here] for departure in departures([run])}

    assert found() == {}
    size, updates = f"size of the {kind} model", f"updates of the {kind} model"
    assert [*found(n_layers=3)] == [*found(d_k=32)] == [*found(d_ff=96)] == [size]
    assert found(label_smoothing=0.0) == {"label smoothing": ["0"]}
    assert found(attention_dropout=0.1) == {"attention dropout": ["0.1 of the weights"]}
    for other in (steps // 2, 2 * steps):
        assert found(steps=other)[updates] == [f"{other:,}"]


def test_what_a_row_varies_is_its_own_and_another_number_of_averaged_checkpoints_departs() -> None:
    rows = [
        paper_run("P_drop=0.2", "table3_D", hyper=changed(dropout=0.2)),
        paper_run("N=2", "table3_C", hyper=changed(n_layers=2)),
        paper_run("big", "table3_big", hyper=changed(**BIG), cost=paper_run().cost | {"steps": 300_000}),
    ]
    assert departures(rows) == []
    others = [("h=1", "table3_A", 5), ("big", "table3_big", 20)]  # Table 3 averages none
    others += [("base en-de", "table2", 1), ("base en-fr", "table2", 20), ("big en-fr", "table2", 5)]
    for row, table, average in others:
        found = departures([paper_run(row, table, hyper=changed(average=average))])
        assert "averaging" in {departure.name for departure in found}, row


def test_rows_that_depart_alone_are_named() -> None:
    rough = PAPER_SETTINGS | {"precision": "bf16"}
    runs = [paper_run("h=1", "table3_A", seed=seed, settings=rough) for seed in (1, 2)]
    [found] = departures([paper_run(), *runs])
    assert (found.here, found.everywhere) == ({"bf16": ["h=1"]}, False)
    [found] = departures([paper_run(settings=rough), *runs])
    assert (found.here, found.everywhere) == ({"bf16": ["base", "h=1"]}, True)
