"""A record of the format so far, as git has it, and what came to it later: each loads, and makes the same table."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from repro.results.frame import table
from repro.results.record import load
from repro.storage import signed_json

GOLDEN = Path(__file__).parent / "golden" / "format2.json"
PLAIN = {name: value for name, value in json.loads(GOLDEN.read_bytes()).items() if name != signed_json.KEY}
SCORES = PLAIN["scores"]["dev"]
BLEU = {name: value for name, value in SCORES.items() if "bleu" in name}
UNPUBLISHED = {name: None for name in BLEU if "published" in name}
SHOWN = {"badge": "L1", "against": [], "order": "ab", "plan": "ab", "weights": None, "replayed": 1, "repeated_lines": 0}
REPEATS = {"dev_sources": 0.25, "dev_pairs": 0.125, "test_sources": 0.0, "test_pairs": 0.0, "same_sides": 0.5}
LATER: dict[str, dict[str, Any]] = {
    "plain": {},
    "all": {
        "determinism": SHOWN,
        "corpus": {"repeats": REPEATS},
        "test_subset": {"name": "newstest2014", "n": 101, **BLEU},
        "scores": {"dev": SCORES | {"accuracy": 0.625}, "test": SCORES | {"accuracy": 0.5}},
        "claims": "ab" * 8,
    },
    "unpublished": {"pair": "en-cs", "scores": dict.fromkeys(("dev", "test"), SCORES | UNPUBLISHED)},
    "diverged": {"status": "diverged", "scores": dict.fromkeys(("dev", "test"), dict.fromkeys(SCORES))},
}


@pytest.fixture(params=LATER)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A record to which some of that came; its stem says what."""
    content = copy.deepcopy(PLAIN)
    for name, value in LATER[request.param].items():
        content[name] = content[name] | value if name == "corpus" else value
    signed_json.write(tmp_path / f"{request.param}.json", content)
    return tmp_path / f"{request.param}.json"


def test_the_published_format_is_written_byte_for_byte(tmp_path: Path) -> None:
    old = load(GOLDEN)
    assert (old.run, old.row, old.seed, old.pair) == ("0123456789abcdef", "h=16", 1, "en-de")
    old.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == GOLDEN.read_bytes()  # the checksum, too


def test_older_and_newer_records_are_written_again_as_they_were_and_make_the_same_table(
    file: Path, tmp_path: Path
) -> None:
    old, written = load(file), json.loads(file.read_bytes())
    for name in ("determinism", "test_subset", "claims", "task"):
        assert getattr(old, name) == written.get(name)
    assert old.score("dev", "accuracy") == written["scores"]["dev"].get("accuracy")
    old.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    frame = table([old])
    line, finished = frame.iloc[-1], old.status == "finished"
    assert (line["row"], line["n"], line["paper/bleu"]) == ("h=16", int(finished), 25.8)
    expected = {"dev/ppl": math.exp(1.5), "dev/bleu": 61.25, "test/bleu": 61.25, "cost/train_seconds": 48.25}
    expected["test/bleu_published"] = math.nan if old.pair == "en-cs" else 63.5
    for name, value in expected.items():
        assert line[name] == pytest.approx(value if finished else math.nan, nan_ok=True)
    assert frame.attrs["shared"].get(("sacreBLEU", "")) == ("nrefs:1|tok:13a" if finished else None)
