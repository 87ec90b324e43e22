"""All rows of all experiment files: they exist at every scale, and their sizes are the printed ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from repro.model.config import BASE, Hyper
from repro.model.cost import PAPER_VOCABULARY, n_parameters
from repro.pages import claims, readme
from repro.pages.columns import TABLE_3
from repro.results.frame import FIGURES
from repro.results.record import BASE as BASE_TABLE
from repro.runs.load import experiment
from repro.runs.options import Options, Seeds
from repro.runs.run_dir import RunDir, planned, shard_of
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, TAKEN, Paper, Row, Table, Translation, listed, rows_of

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TABLES = [experiment(path) for path in sorted(EXPERIMENTS.glob("table3_*.py"))]
ROWS: dict[str, Row] = {"base": BASE_ROW} | {row.name: row for table in TABLES for row in table["ROWS"]}

# Table 3 as printed: PPL, BLEU, millions of parameters
PRINTED = {
    "base": (4.92, 25.8, 65),
    "h=1": (5.29, 24.9, None),
    "h=4": (5.00, 25.5, None),
    "h=16": (4.91, 25.8, None),
    "h=32": (5.01, 25.4, None),
    "d_k=16": (5.16, 25.1, 58),
    "d_k=32": (5.01, 25.4, 60),
    "N=2": (6.11, 23.7, 36),
    "N=4": (5.19, 25.3, 50),
    "N=8": (4.88, 25.5, 80),
    "d_model=256": (5.75, 24.5, 28),
    "d_model=1024": (4.66, 26.0, 168),
    "d_ff=1024": (5.12, 25.4, 53),
    "d_ff=4096": (4.75, 26.2, 90),
    "P_drop=0.0": (5.77, 24.6, None),
    "P_drop=0.2": (4.95, 25.5, None),
    "eps_ls=0.0": (4.67, 25.3, None),
    "eps_ls=0.2": (5.47, 25.7, None),
    "learned positions": (4.92, 25.7, None),
    "big": (4.33, 26.4, 213),
}


BIG = {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "steps": 300_000, "average_every": 600}
# Table 2 as printed, newstest2014, and how section 6.1 made each number: BLEU, pair, changes to the base
TABLE_2: dict[str, tuple[float, str, dict[str, object]]] = {
    "base en-de": (27.3, "en-de", {"average": 5}),
    "big en-de": (28.4, "en-de", BIG | {"average": 20, "dropout": 0.3}),
    "base en-fr": (38.1, "en-fr", {"average": 5}),
    "big en-fr": (41.8, "en-fr", BIG | {"average": 20, "dropout": 0.1}),  # "used dropout rate P_drop = 0.1 instead"
}


def table2_rows() -> dict[str, Row]:
    return {row.name: row for row in experiment(EXPERIMENTS / "table2.py")["ROWS"]}


def test_table_2_is_averaged_dropped_out_and_scored_as_section_6_1_says() -> None:
    rows = table2_rows()
    assert [*rows] == [*TABLE_2]
    for name, (bleu, pair, changes) in TABLE_2.items():
        assert (rows[name].paper.bleu, rows[name].task) == (bleu, Translation(pair)), name
        assert vars(rows[name].change(BASE)) == vars(BASE) | changes, name
    assert {(row.paper.ppl, row.paper.params) for row in rows.values()} == {(None, None)}, "it prints neither"


@pytest.mark.parametrize("scale", SCALES)
def test_table_2_averages_the_last_of_each_run_at_every_scale(scale: str) -> None:
    base = SCALES[scale].base
    for name, row in table2_rows().items():
        here, (n, ratio) = row.change(base), (20, 3) if name.startswith("big") else (5, 1)
        steps = list(here.averaged_steps)
        assert (len(steps), steps[-1]) == (n, here.steps) == (n, ratio * base.steps)
        assert here.dropout == pytest.approx({"big en-de": 3}.get(name, 1) * base.dropout)


def test_the_printed_numbers_are_the_papers() -> None:
    assert {name: (row.paper.ppl, row.paper.bleu, row.paper.params) for name, row in ROWS.items()} == PRINTED
    assert [table["TABLE"] for table in TABLES] == [path.stem for path in sorted(EXPERIMENTS.glob("table3_*.py"))]


def test_the_printed_numbers_of_parameters_come_out() -> None:
    """All but the big model's 213 million, which counts 218 (`docs/paper_map.md`)."""
    printed = {name: params for name, (_, _, params) in PRINTED.items() if params}
    millions = {name: round(n_parameters(ROWS[name].change(BASE), PAPER_VOCABULARY) / 1e6) for name in printed}
    assert millions == {**printed, "big": 218}


@pytest.mark.parametrize("scale", SCALES)
def test_every_row_changes_a_scale_as_it_changes_the_papers_base(scale: str) -> None:
    for name, row in ROWS.items():
        for size in ("n_layers", "d_model", "d_ff", "d_k", "d_v", "n_heads", "steps"):
            here, whole = (getattr(row.change(of), size) / getattr(of, size) for of in (SCALES[scale].base, BASE))
            assert here == whole, (name, size)


def test_a_row_changes_what_the_paper_says_and_nothing_else() -> None:
    changes: dict[str, dict[str, object]] = {
        "d_k=16": {"d_k": 16},
        "N=8": {"n_layers": 8},
        "d_model=1024": {"d_model": 1024, "d_k": 128, "d_v": 128},
        "P_drop=0.2": {"dropout": 0.2},
        "eps_ls=0.2": {"label_smoothing": 0.2},
        "learned positions": {"learned_positions": True},
        "big": BIG | {"dropout": 0.3},
    }
    assert {name: vars(ROWS[name].change(BASE)) for name in changes} == {
        name: vars(BASE) | change for name, change in changes.items()
    }


EN_DE = Translation("en-de")


def names(tables: list[Table], chosen: Sequence[str] = ()) -> list[str]:
    """The rows at the paper's size."""
    return [row.name for _, _, row, _ in rows_of(tables, BASE, chosen, EN_DE)]


def test_an_impossible_row_stops_only_sweeps_that_ask_for_it() -> None:
    rows = [Row("ok", steps(1), Paper()), Row("odd", lambda base: replace(base, n_heads=0), Paper())]
    lab = [Table(name="lab", rows=rows, title="")]
    assert names(lab, ["ok"]) == ["ok"]
    for chosen in (["odd"], ["ok", "odd"], []):
        with pytest.raises(ValueError, match=r"^Row odd: n_heads must be at least 1"):
            names(lab, chosen)
    noted = listed(lab, BASE)
    assert noted["lab", "odd"].here is noted["lab", "odd"].changes is None
    assert noted["lab", "ok"].here is not None


def test_seeds_are_outer_and_rows_inner() -> None:
    one = Row("one", steps(1), Paper())
    other = Row("other", steps(0), Paper(), Translation("en-fr"))
    tables = [Table(name="a", rows=[one], title=""), Table(name="b", rows=[other], title="")]
    made = planned(tables, SCALES["paper"], Options(seeds=Seeds((1, 2))))
    assert [(run.table, run.position, run.name, run.task.name) for run in made] == [
        ("base", -1, "base seed 1", "en-de"),
        ("a", 0, "one seed 1", "en-de"),
        ("b", 0, "other seed 1", "en-fr"),
        ("base", -1, "base seed 2", "en-de"),
        ("a", 0, "one seed 2", "en-de"),
        ("b", 0, "other seed 2", "en-fr"),
    ]
    assert names(tables, ["other"]) == ["other"]
    with pytest.raises(ValueError, match="Unknown row 'two' of a, b; expected some of base, one, other[.]"):
        names(tables, ["two"])


def nine_runs() -> list[RunDir]:
    """Base, a and b with three seeds each."""
    rows = [Row("a", steps(1), Paper()), Row("b", steps(2), Paper())]
    return planned([Table(name="lab", rows=rows, title="")], SCALES["paper"], Options(seeds=Seeds.span(1, 3)))


def test_a_shard_is_every_nth_run_from_the_ith_on_and_all_shards_hold_each_run_once() -> None:
    asked = nine_runs()
    assert [run.name for run in shard_of(asked, "3/4")] == ["b seed 1", "base seed 3"]
    assert shard_of(asked, None) == asked
    for n in (1, 4, 9, 12):
        shards = [shard_of(asked, f"{i}/{n}") for i in range(1, n + 1)]
        assert sorted(run.name for shard in shards for run in shard) == sorted(run.name for run in asked)
        assert max(map(len, shards)) - min(map(len, shards)) <= 1
    for shard in ("0/3", "3/2", "x/2", "1", "1/2\n", "٢/٣"):
        with pytest.raises(ValueError, match=r"^--shard .*: expected I/N, two whole numbers with I from 1 to N"):
            shard_of(asked, shard)


def asked(*rows: Row, table: str = "lab", pair: str = "en-de") -> list[str]:
    found = rows_of([Table(name=table, rows=rows, title="")], SCALES["laptop"].base, [], Translation(pair))
    return [row.name for _, _, row, _ in found]


def steps(n: int) -> Callable[[Hyper], Hyper]:
    return lambda base: replace(base, steps=base.steps + n)


@pytest.mark.parametrize("name", ["my table", "", "a/b", "a" * 81, TAKEN[0], "Claims"])
def test_a_table_that_cannot_be_a_folder_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(ValueError, match="expected a name for a folder"):
        asked(Row("longer", steps(1), Paper()), table=name)


def test_what_stands_beside_tables_has_a_name_that_no_table_has() -> None:
    assert {BASE_TABLE, FIGURES, claims.OF_PAPER.name, claims.OF_TEXTS.name, TABLE_3, readme.NAME.lower()} == {*TAKEN}


@pytest.mark.parametrize("names", [("a", "b", "a"), ("base",), (" ",), ("two\nlines",)])
def test_two_rows_of_one_name_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="expected a name of its own for each row"):
        asked(*(Row(name, steps(i + 1), Paper()) for i, name in enumerate(names)))


def test_a_row_that_is_the_base_or_another_row_again_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Row 'same' of lab is row 'base' of base again"):
        asked(Row("same", steps(0), Paper()))
    with pytest.raises(ValueError, match=r"Row 'b' of lab is row 'a' of lab again"):
        asked(Row("a", steps(1), Paper()), Row("b", steps(1), Paper()))
    with pytest.raises(ValueError, match=r"Row 'german' of lab is row 'base' of base again"):
        asked(Row("german", steps(0), Paper(), Translation("en-de")))
    french = Row("french", steps(0), Paper(), Translation("en-fr"))  # on other text it is another run
    assert asked(french, Row("a", steps(1), Paper())) == ["base", "french", "a"]
    with pytest.raises(ValueError, match=r"Row 'french' of lab is row 'base'"):
        asked(french, pair="en-fr")


def test_where_updates_are_equal_no_row_makes_more_than_the_base() -> None:
    longer = Row("longer", lambda base: replace(base, steps=3 * base.steps, d_ff=2 * base.d_ff), Paper())
    tables, base = [Table(name="lab", rows=[longer], title="")], replace(BASE, steps=70)

    def made(*, equal_updates: bool) -> list[tuple[int, int]]:  # of the tables of the moment
        asked = rows_of(tables, base, [], EN_DE, equal_updates=equal_updates)
        return [(hyper.steps, hyper.d_ff) for *_, hyper in asked]

    assert made(equal_updates=False) == [(70, 2048), (210, 4096)]
    assert made(equal_updates=True) == [(70, 2048), (70, 4096)]
    noted = listed(tables, base, equal_updates=True)["lab", "longer"]
    assert noted.here is not None
    assert noted.here["steps"] == 70
    assert noted.changes == {"steps": 300_000, "d_ff": 4096}  # at the paper's size
    tables = [Table(name="lab", rows=[Row("longer", lambda base: replace(base, steps=210), Paper())], title="")]
    with pytest.raises(ValueError, match="is row 'base' of base again"):
        made(equal_updates=True)


def test_a_table_is_called_as_its_file() -> None:
    table = Table(name="mine", rows=[], title="", file=Path("lab_mine.py"))
    with pytest.raises(ValueError, match=r"lab_mine.py: expected TABLE to be what the file is called, .* got 'mine'"):
        names([table])
    assert names([replace(table, name="lab_mine")])
    own = Table(name="own", rows=[], title="", file=Path("own.py"))
    with pytest.raises(ValueError, match=r"own.py: expected TABLE to be what the file is called, and not 'own'"):
        names([own])
