"""A record comes back as it was saved, or not at all; and no two rows share a file."""

import copy
import functools
import hashlib
import json
import math
import operator
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repro.decoding.search import Search
from repro.model.config import LATER, Hyper
from repro.results.frame import table
from repro.results.record import Record, load, path, short, slug, thinned
from repro.storage import signed_json

GOLDEN_FILE = Path(__file__).parent / "golden" / "format2.json"
GOLDEN = json.loads(GOLDEN_FILE.read_bytes())
SCORE: dict[str, Any] = GOLDEN["scores"]["dev"] | {"ppl": 4.48169}  # exp(1.5), in digits that a float keeps


def fields() -> dict[str, Any]:
    """A record's content, new on each call; its row has every field of today."""
    content = {name: value for name, value in copy.deepcopy(GOLDEN).items() if name != "sha256"}
    return content | {
        "hyper": asdict(Hyper(n_heads=16, d_k=32, d_v=32)),
        "scores": {"dev": dict(SCORE), "test": dict(SCORE)},
    }


def test_a_curve_is_thinned_evenly_and_keeps_its_end() -> None:
    short: Any = {"step": [20, 40, 60], "nll": [3.0, 2.123456789, 1.0]}
    assert thinned(short) == {"step": [20, 40, 60], "nll": [3.0, 2.12346, 1.0]}
    assert thinned({"step": [], "nll": []}) == {"step": [], "nll": []}
    long: Any = {"step": list(range(1, 251)), "nll": [1.0] * 250}
    kept = thinned(long)["step"]
    assert (len(kept), kept[0], kept[-1]) == (100, 3, 250)
    assert {b - a for a, b in pairwise(kept)} == {2, 3}


def test_an_older_row_has_fewer_fields_and_keeps_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "record.json"
    content = fields()
    for name in LATER:
        del content["hyper"][name]
    file.write_bytes(signed(content))
    old = load(file)
    assert (old.hyper["attention_dropout"], old.hyper["lr_factor"]) == (0.0, 1.0)
    old.save(file)
    assert json.loads(file.read_bytes()) == json.loads(signed(content))

    @dataclass(frozen=True, kw_only=True)
    class Grown(Hyper):
        attention: str = "dot"  # text, which no count or share is

    monkeypatch.setattr("repro.results.record.Hyper", Grown)
    assert load(file).hyper["attention"] == "dot"
    with pytest.raises(ValueError, match=r"record\.hyper: missing \['attention'\]"):
        Record(**fields())  # a new record has all of them


def test_a_later_field_is_written_where_it_says_something(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    for change in ({"lr_factor": 0.5}, {"attention_dropout": 0.1}):
        record = Record(**fields() | {"hyper": asdict(Hyper(**change))})
        record.save(file)
        assert {*LATER} & json.loads(file.read_bytes())["hyper"].keys() == change.keys()
        assert load(file) == record


def with_last_mean(**change: Any) -> dict[str, Any]:
    """A record whose dev the mean of ten checkpoints translates too; `change` is what differs in dev."""
    dev, test = (dict(SCORE) | {"bleu": bleu, "length": length} for bleu, length in ((61.5, 0.96), (60.5, 1.03)))
    last_mean = {"steps": [*range(330, 601, 30)], "weights": "ab" * 32, "seconds": 2.5, "dev": dev | change}
    return fields() | {"last_mean": last_mean | {"test": test}}


def test_scores_by_the_mean_of_the_last_checkpoints_are_kept_and_older_records_have_none(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    record = Record(**with_last_mean())
    record.save(file)
    assert load(file) == record
    assert record.score("last_mean_dev", "bleu") == 61.5
    assert [record.score("last_mean_test", name) for name in ("bleu", "length")] == [60.5, 1.03]
    assert (record.score("dev", "bleu"), record.score("dev", "length")) == (SCORE["bleu"], None)
    assert Record(**fields()).score("last_mean_dev", "bleu") is None


def test_numbers_at_the_ends_of_their_range_are_taken() -> None:
    content = fields()
    content["scores"]["dev"] |= {"bleu": 100.00000000000004, "bleu_published": 0.0, "nll": 0.0, "ppl": 1.0}
    content["scores"]["test"] |= {"nll": 690.0, "ppl": math.exp(690.0) * (1 - 5e-7)}
    assert Record(**content).score("dev", "bleu") == 100.00000000000004


def test_a_record_comes_back_as_it_was_from_its_place_by_scale_table_row_and_seed(tmp_path: Path) -> None:
    record = Record(**fields())
    file = path(tmp_path, record)
    assert file == tmp_path / "laptop" / "table3_A" / "h=16-seed1.json"
    record.save(file)
    assert load(file) == record
    assert file.read_bytes().endswith(b"}\n")
    other = path(tmp_path, replace(record, row="../../N=2", seed=7))
    assert other.parent == file.parent
    assert other.name.endswith("-seed7.json")


UNPUBLISHED: dict[str, None] = {"bleu_published": None, "bleu_published_signature": None}


def test_a_finished_run_may_lack_the_published_score_or_accuracy_but_in_both_splits_and_nothing_else() -> None:
    may, told = [UNPUBLISHED, {"accuracy": None}], {"accuracy": 0.625}  # CTranslate2 does not tell the accuracy
    lacking = [{"bleu_published_signature": None}, {"nll": None}]
    for less in may:
        Record(**fields() | {"scores": dict.fromkeys(("dev", "test"), SCORE | less)})
    in_one = [{"dev": SCORE | UNPUBLISHED, "test": SCORE}, {"dev": SCORE | told, "test": SCORE | may[1]}]
    for scores in (*in_one, *(dict.fromkeys(("dev", "test"), SCORE | less) for less in lacking)):
        with pytest.raises(ValueError, match="expected all of them from a finished run"):
            Record(**fields() | {"scores": scores})


@pytest.mark.parametrize(
    ("keys", "value", "complaint"),
    [
        (("scores", "dev", "bleu"), -0.1, r"scores\.dev\.bleu: expected a number from 0 to 100, got -0\.1"),
        (("scores", "dev", "nll"), -1e-3, r"scores\.dev\.nll: expected a number from 0 to inf, got -0\.001"),
        (("scores", "test", "ppl"), math.exp(1.5) * (1 + 2e-6), r"scores\.test\.ppl: expected exp\(nll\), whose log"),
        (("last_mean", "dev", "accuracy"), 50.0, r"last_mean\.dev\.accuracy: expected a number from 0 to 1, got 50\.0"),
        (("scores", "dev", "bleu"), math.nan, r"scores\.dev\.bleu: expected a finite number, got nan"),
        (("scores", "dev"), {"nll": 1.5}, r"scores\.dev: missing \['bleu', .*'ppl'\]"),
        (("paper", "ppl"), 0.5, r"paper\.ppl: expected a number from 1 to inf, got 0\.5"),
        (("last_mean", "dev", "length"), "1", r"last_mean\.dev\.length: expected float, got '1'"),
        (("seed",), "1", "seed: expected int, got '1'"),
        (("seed",), True, "seed: expected int, got True"),
        (("run",), "0123456789ABCDEF", "run: expected text like"),
        (("table",), "..", "table: expected text like"),
        (("table",), "a/b", "table: expected text like"),
        (("table",), "a\n", "table: expected text like"),
        (("status",), "running", "status: expected one of"),
        (("corpus",), "grammar", "corpus: expected a dictionary, got 'grammar'"),
        (("corpus", "notes"), "much", r"corpus\.notes: expected a list, got 'much'"),
        (("hyper", "heads"), 16, r"hyper: missing \[\], unknown \['heads'\]"),
        (("cost", "flops"), math.inf, "cost.flops: expected a finite number, got inf"),
        (("curves", "dev", "nll"), [2.75], "curves.dev: expected a number for each step"),
        (("curves", "train", "step"), [200, 400, 600.5], r"curves.train.step\[2\]: expected int, got 600.5"),
        (("claims",), 7, r"claims: expected str or NoneType, got 7"),
        (("settings", "beams"), (1, 4), "settings: expected values that JSON keeps"),
        (("settings", "folder"), Path("x"), "settings: Object of type"),
        (("row",), "\ud800", ".*surrogates not allowed"),
    ],
)
def test_a_wrong_type_range_or_key_is_refused(keys: tuple[str, ...], value: Any, complaint: str) -> None:
    content = with_last_mean()
    functools.reduce(operator.getitem, keys[:-1], content)[keys[-1]] = value
    with pytest.raises(ValueError, match=rf"^(record\.)?{complaint}"):
        Record(**content)


def signed(content: dict[str, Any]) -> bytes:
    """A file whose checksum is right, whatever it holds."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False).encode()
    return json.dumps({**content, "sha256": hashlib.sha256(canonical).hexdigest()}).encode()


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda content: signed({**content, "format": True}), "expected a record of format 2, got True"),
        (lambda content: signed({**content, "format": 3}), "expected a record of format 2, got 3"),
        (lambda content: signed({**content, "chrf": 1.0}), "unexpected keyword argument 'chrf'"),
        (lambda content: signed({**content, "seed": "1" * 999}), r"record.seed: expected int, got '1{79}\. Restore"),
        (lambda content: signed(content).replace(b"61.25", b"61.26"), "edited by hand or damaged"),
        (lambda content: b"[" + signed(content) + b"]", r"of format 2, got \[\{.{78}\. Restore"),
        (lambda content: b"\xff\xfe{}", "decode|Expecting"),
        (lambda content: b"[" * 100_000, "recursion|nested"),
    ],
)
def test_an_error_about_a_damaged_file_names_it_and_the_remedy_in_short(
    spoil: Callable[[dict[str, Any]], bytes], complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "h=16-seed1.json"
    file.write_bytes(spoil(fields()))
    with pytest.raises(ValueError, match=complaint) as error:
        load(file)
    assert str(error.value).startswith(f"{file}: ")
    assert str(error.value).endswith(
        "Restore the file from git, update this package, or delete it and run the row again."
    )
    assert len(str(error.value)) < len(str(file)) + 260


def test_a_record_has_the_scores_of_its_task_and_no_others(tmp_path: Path) -> None:
    content = fields()
    own = {name: SCORE[name] for name in ("nll", "ppl")} | {"f1": 91.25, "f1_signature": "evalb"}
    own |= dict.fromkeys(("crossing", "crossing_signature"))
    parsing = {"name": "parsing", "scores": ["f1", "crossing"], "search": Search(21, 0.3, 300).settings}
    content |= {"task": parsing, "scores": {"dev": dict(own), "test": dict(own)}}
    Record(**content).save(tmp_path / "record.json")
    done = load(tmp_path / "record.json")
    assert done == Record(**content)
    assert (done.score("dev", "f1"), done.score("dev", "crossing"), done.score("dev", "bleu")) == (91.25, None, None)
    none = dict.fromkeys(("f1", "f1_signature"))
    for lacking in (none, {"f1": None}, {"f1_signature": None}, {"f1": "91.25"}, {"crossing": 2.0}, {"bleu": 1.0}):
        with pytest.raises(ValueError, match=r"record\.scores"):
            Record(**{**content, "scores": {"dev": own | lacking, "test": own | lacking}})
    with pytest.raises(ValueError, match=r"record\.scores\.dev: missing \['bleu', "):
        Record(**{**content, "task": None})
    with pytest.raises(ValueError, match=r"record\.task"):
        Record(**{**content, "task": {"name": "parsing"}})


NAMES = st.text() | st.text("aA-=./_ \\\n", max_size=6) | st.text("ab-", min_size=75, max_size=90)


@given(name=NAMES)
@example("")
@example("../../etc/passwd")
@example("-rf")
@example("a" * 300)
@example("\ud800")
def test_a_slug_is_a_name_for_a_file(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9._=-]{1,80}", slug(name))
    assert slug(name)[0] not in ".-"
    assert slug(name) == name or slug(slug(name)) != slug(name), "no name is the slug of another"


@given(one=NAMES, other=NAMES)
@example("N=2", "n=2")
@example("a b", "a-b")
@example("a" * 80, "a" * 81)
@example("", "row")
def test_two_names_never_share_a_slug(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


@given(name=st.text("ab-_.=", min_size=1, max_size=200))
def test_a_name_too_long_for_a_folder_is_cut_and_stays_its_own(name: str) -> None:
    assert (short(name) == name) == (len(name) <= 80)
    assert len(short(name)) <= 80
    assert name[:70] == short(name)[:70]
    assert short(f"{name}x") != short(name)


# The format so far, as git has it, and what came to it later

SHOWN = {"badge": "L1", "against": [], "order": "ab", "plan": "ab", "weights": None, "replayed": 1, "repeated_lines": 0}
REPEATS = {"dev_sources": 0.25, "dev_pairs": 0.125, "test_sources": 0.0, "test_pairs": 0.0, "same_sides": 0.5}
LATER_KEYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "all": {
        "determinism": SHOWN,
        "corpus": {"repeats": REPEATS},
        "scores": {"dev": SCORE | {"accuracy": 0.625}, "test": SCORE | {"accuracy": 0.5}},
        "claims": "ab" * 8,
    },
    "unpublished": {"pair": "en-cs", "scores": dict.fromkeys(("dev", "test"), SCORE | UNPUBLISHED)},
    "diverged": {"status": "diverged", "scores": dict.fromkeys(("dev", "test"), dict.fromkeys(SCORE))},
}


def test_the_published_format_is_written_byte_for_byte(tmp_path: Path) -> None:
    old = load(GOLDEN_FILE)
    assert (old.run, old.row, old.seed, old.pair) == ("0123456789abcdef", "h=16", 1, "en-de")
    old.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == GOLDEN_FILE.read_bytes()  # the checksum, too


@pytest.mark.parametrize("later", LATER_KEYS.values(), ids=LATER_KEYS)
def test_older_and_newer_records_are_written_again_as_they_were_and_make_the_same_table(
    later: dict[str, Any], tmp_path: Path
) -> None:
    plain = {name: value for name, value in copy.deepcopy(GOLDEN).items() if name != "sha256"}
    plain["corpus"] |= later.get("corpus", {})
    signed_json.write(file := tmp_path / "record.json", plain | {**later, "corpus": plain["corpus"]})
    old, written = load(file), json.loads(file.read_bytes())
    for name in ("determinism", "claims", "task"):
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
