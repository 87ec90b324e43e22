"""What stands beside a record: the same BLEU from sums as from lines, and nothing of another run."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_sentences import REFERENCES, hypotheses, leave, splits, with_scores
from paper_runs import paper_run
from sacrebleu.metrics.bleu import BLEU

from repro.results import sentences
from repro.results.record import Record, path
from repro.results.sentences import (
    NgramCounts,
    are_of,
    bleu,
    copy_sentences,
    counts_of_runs,
    faults,
    files,
    read_counts,
    read_hypotheses,
)
from repro.storage import packed_json, signed_json


def run(seed: int, **other: Any) -> Record:
    return with_scores(paper_run("h=1", "table3_A", seed=seed, run=f"{seed:016x}", scale="lab", **other))


@given(
    st.integers(0, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, 60), *(st.integers(0, max(0, n - k)) for k in range(4)))
    ),
    st.booleans(),
)
def test_bleu_of_sums_is_sacrebleus(counts: tuple[int, ...], smoothed: bool) -> None:
    hypothesis, reference, *correct = counts
    total = [max(0, hypothesis - k) for k in range(4)]
    theirs = BLEU.compute_bleu(correct, total, hypothesis, reference, smooth_method="exp" if smoothed else "none").score
    sums = np.array([hypothesis, reference, *correct, *total], dtype=np.float64)
    # beside sums of another text, and of one without a right word: each is scored by itself
    assert bleu(np.stack([SUMS, sums, NONE_RIGHT]), smoothed=smoothed) == pytest.approx(
        [BY_HAND * smoothed, theirs, 0.0], abs=1e-9
    )


# 4 of 5 words right, 2 of 4 pairs, 1 of 3 triples, no quadruple of 2: smoothed half of one
SUMS = np.array([5, 6, 4, 2, 1, 0, 5, 4, 3, 2], dtype=np.float64)
BY_HAND = 100 * np.exp(1 - 6 / 5) * (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25
NONE_RIGHT = np.array([5, 6, 0, 0, 0, 0, 5, 4, 3, 2], dtype=np.float64)


def test_bleu_by_hand() -> None:
    assert bleu(SUMS, smoothed=True) == pytest.approx(BY_HAND)
    assert bleu(SUMS, smoothed=False) == 0
    assert bleu(NONE_RIGHT, smoothed=True) == 0
    assert bleu(np.array([4, 4, 4, 3, 2, 1, 4, 3, 2, 1], dtype=np.float64), smoothed=False) == pytest.approx(100)


def test_counts_come_back_and_give_the_records_bleu(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    assert not list(faults(tmp_path, record))
    found = read_counts(tmp_path, record)
    assert found is not None
    for split, of in splits(1).items():
        assert read_hypotheses(path(tmp_path, record), split) == hypotheses(1, split)
        for name, counts in of.scorers.items():
            assert found[split][name].summands.tolist() == counts.summands.tolist()
    whole = BLEU().corpus_score(hypotheses(1, "dev"), [REFERENCES["dev"]]).score
    assert bleu(found["dev"]["bleu"].summands.sum(0), smoothed=True) == pytest.approx(whole, abs=1e-9)
    assert [*counts_of_runs(tmp_path, [record, run(2)])] == [("table3_A/h=1", 1)], "seed 2 has none"


def test_the_same_translations_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        leave(tmp_path / name, [run(1)])
    for one, other in zip(*(files(path(tmp_path / name, run(1))) for name in ("one", "other")), strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert one.read_bytes()[4:8] == b"\0" * 4, "no time"
        assert not one.read_bytes()[3] & 8, "no name"


def test_records_are_found_among_their_translations(tmp_path: Path) -> None:
    from repro.results.frame import load_records, record_folders

    leave(tmp_path, [run(1), run(2)])
    [folder] = record_folders(tmp_path / "lab")
    assert [one.seed for one in load_records(folder)] == [1, 2]
    assert len([*folder.iterdir()]) == 2 * 4


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    for file in files(path(tmp_path, record)):
        kept = file.read_bytes()
        file.unlink()
        assert list(faults(tmp_path, record)) == [f"{file.name} is not there"]
        file.write_bytes(kept)
    assert not list(faults(tmp_path, record))
    other = replace(record, seed=9)
    assert list(faults(tmp_path, other)) == [
        "h=1-seed9.dev.hyp.gz, h=1-seed9.test.hyp.gz, h=1-seed9.counts.gz are not there"
    ]
    nothing: Any = {split: dict.fromkeys(record.scores[split]) for split in ("dev", "test")}  # type: ignore[literal-required]
    assert not list(faults(tmp_path, replace(other, status="diverged", scores=nothing)))


def test_the_translations_of_another_seed_are_known_as_such(tmp_path: Path) -> None:
    one, other = run(1), run(2)
    leave(tmp_path, [one, other])
    [mine, theirs] = files(path(tmp_path, one)), files(path(tmp_path, other))
    mine[0].write_bytes(theirs[0].read_bytes())
    assert list(faults(tmp_path, one)) == ["h=1-seed1.dev.hyp.gz holds other translations than were scored"]
    for here, there in zip(mine, theirs, strict=True):
        here.write_bytes(there.read_bytes())
    [said] = faults(tmp_path, one)
    assert f"expected counts of run {one.run}, got those of run {other.run}" in said
    with pytest.raises(ValueError, match=r"counts\.gz: expected counts of run .* Restore the file from git"):
        read_counts(tmp_path, one)
    assert are_of(path(tmp_path, one), other.run)


def spoilt(file: Path, **changes: Any) -> None:
    """The counts with other content and a checksum that is right."""
    content = json.loads(gzip.decompress(file.read_bytes())) | changes
    content.pop("sha256")
    content["sha256"] = signed_json.checksum(content)
    file.write_bytes(gzip.compress(json.dumps(content).encode()))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": 2}, "expected a table of format 1"),
        ({"dev": {"counts": {"bleu": ["1 1 1"] * 6}}}, "dev: expected counts that give the record's bleu of"),
        ({"dev": {"counts": {"bleu": ["1 1"] * 6}}}, "dev: expected counts of 3 sentences, got 2"),
        ({"dev": {"counts": {"bleu": ["1 1 1"] * 5}}}, r"expected 6 columns of one length, got \[3, 3, 3, 3, 3\]"),
        ({"dev": {"counts": {"bleu": ["1 1 1", "1 1", *["1 1 1"] * 4]}}}, r"of one length, got \[3, 2, 3, 3, 3, 3\]"),
        ({"dev": {"counts": {"bleu": ["1 1 x"] * 6}}}, "could not be read to its end"),
        ({"dev": {"counts": {"chrf": ["1 1 1"] * 6}}}, "chrf"),
    ],
)
def test_counts_that_cannot_be_are_refused(change: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    spoilt(files(path(tmp_path, record))[-1], **change)
    with pytest.raises(ValueError, match=complaint):
        read_counts(tmp_path, record)


def test_counts_are_read_once_and_again_where_the_file_or_the_record_is_another(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    found = read_counts(tmp_path, record)
    assert read_counts(tmp_path, record) is found
    wrong = replace(record, run="f" * 16)
    with pytest.raises(ValueError, match="expected counts of run f"):
        read_counts(tmp_path, wrong)
    spoilt(files(path(tmp_path, record))[-1], run="e" * 16)
    with pytest.raises(ValueError, match="got those of run e"):
        read_counts(tmp_path, record)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    counts = files(path(tmp_path, record))[-1]
    whole = counts.read_bytes()
    for damaged in (whole[:-9], b"", b"not gzip", gzip.compress(gzip.decompress(whole).replace(b"1", b"2", 1))):
        counts.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"counts\.gz"):
            read_counts(tmp_path, record)
        assert not are_of(path(tmp_path, record), record.run)


@pytest.mark.parametrize("which", [0, -1], ids=["translations", "counts"])
def test_what_is_cut_off_or_overwritten_is_named_by_its_place_with_what_to_do(which: int, tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    place = path(tmp_path, record)
    file = files(place)[which]
    whole = file.read_bytes()
    readers: list[Callable[[], object]] = [lambda: read_hypotheses(place, "dev")]
    if which:
        readers = [
            lambda: read_counts(tmp_path, record),
            lambda: sentences.read_places(tmp_path, record, "dev"),
            lambda: sentences.read_lengths(place, "dev"),
            lambda: sentences.has_places(place),
        ]
    for damaged in (whole[:-9], whole[:12] + b"\xff" * 9 + whole[21:]):
        file.write_bytes(damaged)
        for read in readers:
            with pytest.raises(ValueError, match=r"is damaged: .*\. Restore the file from git, or run the row") as told:
                read()
            assert str(told.value).startswith(f"{file}: ")


def test_copies_take_the_place_of_another_runs_and_leave_their_own(tmp_path: Path) -> None:
    one, other = run(1), replace(run(2), seed=1)
    for name, record in (("own", one), ("there", other)):
        sentences.write_sentences(path(tmp_path / name, record), record.run, splits(1))
    own, there = path(tmp_path / "own", one), path(tmp_path / "there", other)
    copy_sentences(tmp_path / "nowhere.json", there, other.run)
    assert are_of(there, other.run), "nothing to copy, and these are its own"
    copy_sentences(own, there, one.run)
    assert are_of(there, one.run)
    copy_sentences(tmp_path / "nowhere.json", there, other.run)
    assert not any(file.exists() for file in files(there)), "of another run than the record"


def test_no_more_is_unpacked_than_text_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = run(1)
    leave(tmp_path, [record])
    monkeypatch.setattr(packed_json, "MOST", 10)
    with pytest.raises(ValueError, match="holds more than 10 bytes"):
        read_counts(tmp_path, record)


def test_summands_count_the_n_grams_there_are() -> None:
    counts = NgramCounts(np.array([6, 2, 0]), np.array([5, 3, 1]), np.array([[4, 3, 2, 1], [1, 0, 0, 0], [0, 0, 0, 0]]))
    assert counts.summands.tolist() == [
        [6, 5, 4, 3, 2, 1, 6, 5, 4, 3],
        [2, 3, 1, 0, 0, 0, 2, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
