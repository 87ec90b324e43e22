"""Records of every format so far, written by the code of their time: each loads, and makes the same table."""

import json
import math
from pathlib import Path

import pytest

from repro.results.frame import table
from repro.results.record import FORMAT, load

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))


def test_each_format_is_there() -> None:
    assert {json.loads(file.read_bytes())["format"] for file in FILES} == {FORMAT}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_loads_and_is_written_again_as_it_was(file: Path, tmp_path: Path) -> None:
    old, written = load(file), json.loads(file.read_bytes())
    assert (old.run, old.row, old.seed, old.pair) == ("0123456789abcdef", "h=16", 1, written["pair"])
    assert old.scores == written["scores"]
    assert old.format == FORMAT
    old.save(tmp_path / "again.json")
    assert load(tmp_path / "again.json") == old
    if written["format"] == FORMAT:  # the checksum, too: what git has does not change
        assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_table_of_it_is_the_same(file: Path) -> None:
    old = load(file)
    frame = table([old])
    line, finished = frame.iloc[-1], old.status == "finished"
    assert (line["row"], line["n"], line["paper/bleu"]) == ("h=16", int(finished), 25.8)
    expected = {"dev/ppl": math.exp(1.5), "dev/bleu": 61.25, "test/bleu": 61.25, "test/bleu_published": 63.5}
    expected["cost/train_seconds"] = 48.25
    if old.pair == "en-cs":
        expected["test/bleu_published"] = math.nan
    for name, value in expected.items():
        assert line[name] == pytest.approx(value if finished else math.nan, nan_ok=True)
    signed = frame.attrs["shared"].get(("sacreBLEU", ""))
    assert signed == ("nrefs:1|tok:13a" if finished else None)
    assert not [departure for departure in frame.attrs["departures"] if departure.name == "search"]


def test_what_came_later_is_absent() -> None:
    old = {file.stem: load(file) for file in FILES}
    assert len(old["format2-curves"].curves["train"]["step"]) == 3
    assert old["format2-curves"].determinism is None
    assert old["format2-determinism"].determinism is not None
    assert "repeats" not in old["format2-determinism"].corpus
    assert old["format2-repeats"].corpus["repeats"]["same_sides"] == 0.5
    assert {name for name, one in old.items() if "accuracy" in one.scores["dev"]} == {"format2-accuracy"}
    assert (old["format2-accuracy"].score("dev", "accuracy"), old["format2-subset"].score("dev", "accuracy")) == (
        0.625,
        None,
    )
    assert old["format2-unpublished"].score("test", "bleu_published") is None
    assert old["format2-unpublished"].score("test", "bleu") == 61.25
    assert old["format2-repeats"].test_subset is None
    assert old["format2-subset"].test_subset is not None
    assert old["format2-diverged"].score("dev", "nll") is None
    assert all(one.task is None for one in old.values())
