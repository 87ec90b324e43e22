"""Sentences beside records: a file a run of one's own, a file a table once published, and nothing of another run."""

from pathlib import Path

import numpy as np
import pandas as pd

from repro.results import artifacts
from repro.results.artifacts import Artifact, own_file

RUNS = {"a-seed1": "r1", "a-seed2": "r2", "b--1f-seed10": "r3"}


def made(run: str, n: int = 3, **more: object) -> Artifact:
    numbers = np.arange(n) + int(run[1:])
    columns = {"hypothesis": [f"{run} line {i} ✓" for i in range(n)], "bleu/1": numbers}
    return Artifact({"run": run, **more}, columns)


def left(folder: Path, **of: str) -> dict[str, Path]:
    """The places of records in `folder` with dev and test, and a further set of the first."""
    places = {stem: folder / f"{stem}.json" for stem in of or RUNS}
    for stem, place in places.items():
        run = (of or RUNS)[stem]
        artifacts.write(place, "dev", made(run, references="abc"))
        artifacts.write(place, "test", made(run, 2))
    artifacts.write(places[next(iter(places))], "test_2017", made(RUNS["a-seed1"], 4, scores={"bleu": 1.5}))
    return places


def same(one: Artifact | None, other: Artifact) -> bool:
    assert one
    columns = {name: [*column] for name, column in one.columns.items()}
    return one.about == other.about and columns == {name: [*column] for name, column in other.columns.items()}


def test_what_was_written_comes_back_from_a_run_and_from_a_table(tmp_path: Path) -> None:
    left(tmp_path / "own")
    artifacts.publish(table := tmp_path / "table", tmp_path / "own", RUNS)
    assert sorted(file.name for file in table.iterdir()) == ["dev.parquet", "test.parquet", "test_2017.parquet"]
    frame = pd.read_parquet(table / "dev.parquet")  # a line a sentence
    sums = frame.groupby(["row", "seed"], observed=True)["bleu/1"].sum().to_dict()
    assert sums == {("a", 1): 6, ("a", 2): 9, ("b--1f", 10): 12}
    for folder in (tmp_path / "own", table):
        for stem, run in RUNS.items():
            place = folder / f"{stem}.json"
            assert same(artifacts.read(place, "dev"), made(run, references="abc"))
            assert same(artifacts.read(place, "test"), made(run, 2))
            assert artifacts.texts(place) == ["dev", "test", *(["test_2017"] if run == "r1" else [])]
        some = artifacts.read(folder / "a-seed2.json", "dev", ["bleu/1", "not there"])
        assert some
        assert [*some.columns] == ["bleu/1"]
        assert artifacts.read(folder / "a-seed3.json", "dev") is None
        assert artifacts.read(folder / "a-seed2.json", "test_2017") is None
    assert artifacts.texts(tmp_path / "nowhere" / "a-seed1.json") == []


def test_a_run_without_a_column_that_others_have_has_none(tmp_path: Path) -> None:
    own = left(tmp_path / "own")
    artifacts.write(own["a-seed2"], "dev", Artifact({"run": "r2"}, {"words": np.array([5, 6])}))
    artifacts.publish(tmp_path, tmp_path / "own", RUNS)
    found = artifacts.read(tmp_path / "a-seed2.json", "dev")
    assert found
    assert {name: [*column] for name, column in found.columns.items()} == {"words": [5, 6]}
    assert same(artifacts.read(tmp_path / "a-seed1.json", "dev"), made("r1", references="abc"))


def test_runs_join_a_published_table_take_a_place_and_leave_it(tmp_path: Path) -> None:
    left(tmp_path / "first")
    artifacts.publish(table := tmp_path / "table", tmp_path / "first", RUNS)
    left(tmp_path / "later", **{"a-seed2": "r7", "c-seed1": "r8"})
    now = {"a-seed1": "r1", "a-seed2": "r7", "c-seed1": "r8"}
    artifacts.publish(table, tmp_path / "later", now)
    there = {stem: artifacts.read(table / f"{stem}.json", "test") for stem in (*RUNS, "c-seed1")}
    assert {stem: found and found.about["run"] for stem, found in there.items()} == {**now, "b--1f-seed10": None}
    before = (table / "dev.parquet").read_bytes()
    artifacts.publish(table, tmp_path / "first", now)
    assert (table / "dev.parquet").read_bytes() == before, "what is of another run is not taken; the same bytes"
    artifacts.publish(table, tmp_path / "later", {})
    assert [*table.iterdir()] == []


def test_copies_take_the_place_of_another_runs_and_leave_their_own(tmp_path: Path) -> None:
    one = left(tmp_path / "x", **{"a-seed1": "r1"})["a-seed1"]
    other, beside = left(tmp_path / "y", **{"a-seed1": "r2", "a-seed11": "r3"}).values()
    own_file(other, "test_2017").unlink()
    artifacts.copy(tmp_path / "nowhere.json", other, "r2")
    assert artifacts.texts(other) == ["dev", "test"], "nothing to copy, and these are its own"
    artifacts.copy(one, other, "r1")
    assert artifacts.texts(one) == artifacts.texts(other) == ["dev", "test", "test_2017"]
    assert artifacts.are_of(other, "r1", artifacts.texts(one))
    artifacts.copy(tmp_path / "nowhere.json", other, "r2")
    assert artifacts.texts(other) == [], "of another run than the record"
    assert artifacts.texts(beside) == ["dev", "test"], "of a run whose name begins alike"
    own_file(beside, "dev").write_bytes(b"damaged")
    artifacts.copy(one, other, "r1")
    assert artifacts.are_of(other, "r1"), "whatever is wrong with another"


def test_what_is_cut_off_or_overwritten_is_named_with_what_to_do(tmp_path: Path) -> None:
    left(tmp_path)
    artifacts.publish(tmp_path / "table", tmp_path, RUNS)
    place = tmp_path / "table/a-seed1.json"
    file = place.with_name("dev.parquet")
    whole, said = file.read_bytes(), set[str]()
    spoilt = {n: whole[:n] + bytes([whole[n] ^ 255]) + whole[n + 1 :] for n in range(4, len(whole), 17)}
    for damaged in (whole[:-9], b"", b"no Parquet", *spoilt.values()):
        file.write_bytes(damaged)
        try:
            found = artifacts.read(place, "dev")
        except ValueError as error:
            said.add(str(error))
        else:  # a byte that nobody reads, as of the writer's name
            assert found is None or same(found, made("r1", references="abc"))
    assert len(said) > 3
    assert all(one.startswith(f"{file} is damaged: ") and "Restore the file from git" in one for one in said)
