"""What stands beside a record: the same BLEU and F1 from sums as from lines, and nothing of another run."""

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.test_treebank import whole
from hypothesis import example, given
from hypothesis import strategies as st
from kept_sentences import REFERENCES, hypotheses, leave, parser, splits, with_scores
from paper_runs import paper_run
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesTokenizer

from repro.corpora.grammar.generate import gold_trees
from repro.decoding.bleu import sacrebleu_score
from repro.results import artifacts, sentences
from repro.results.artifacts import Artifact, are_of, own_file
from repro.results.details import F1_THIRDS, with_brackets
from repro.results.frame import table
from repro.results.record import Record, path
from repro.runs.outputs import brackets_of
from repro.runs.table import Parsing


def run(seed: int, **other: Any) -> Record:
    return with_scores(paper_run("h=1", "table3_A", seed=seed, run=f"{seed:016x}", scale="lab", **other))


@given(
    st.integers(0, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, 60), *(st.integers(0, max(0, n - k)) for k in range(4)))
    )
)
def test_bleu_of_sums_is_sacrebleus(counts: tuple[int, ...]) -> None:
    hypothesis, reference, *correct = counts
    total = [max(0, hypothesis - k) for k in range(4)]
    theirs = BLEU.compute_bleu(correct, total, hypothesis, reference, smooth_method="exp").score
    sums = np.array([hypothesis, reference, *correct, *total], dtype=np.float64)
    # beside sums of another text, and of one without a right word: each is scored by itself
    assert sentences.bleu(np.stack([SUMS, sums, NONE_RIGHT])) == pytest.approx([BY_HAND, theirs, 0.0], abs=1e-9)


# 4 of 5 words right, 2 of 4 pairs, 1 of 3 triples, no quadruple of 2: smoothed half of one
SUMS = np.array([5, 6, 4, 2, 1, 0, 5, 4, 3, 2], dtype=np.float64)
BY_HAND = 100 * np.exp(1 - 6 / 5) * (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25
NONE_RIGHT = np.array([5, 6, 0, 0, 0, 0, 5, 4, 3, 2], dtype=np.float64)


def summands(results: Path, record: Record, *of: str) -> Any:
    counts = sentences.read_counts(results, record, *of)
    return None if counts is None else counts.tolist()


def test_counts_come_back_and_give_the_records_bleu(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    assert not list(sentences.faults(tmp_path, record))
    for split, of in splits(1).items():
        assert sentences.read_hypotheses(path(tmp_path, record), split) == hypotheses(1, split)
        assert summands(tmp_path, record, split) == sentences.ngram_counts(*of[:2], "de")[0].tolist()
    whole = BLEU().corpus_score(hypotheses(1, "dev"), [REFERENCES["dev"]]).score
    assert sentences.bleu(np.array(summands(tmp_path, record)).sum(0)) == pytest.approx(whole, abs=1e-9)
    assert sentences.read_counts(tmp_path, run(2)) is None, "seed 2 has none"


def test_generated_text_keeps_its_references_and_no_counts(tmp_path: Path) -> None:
    record, made = run(1), splits(1, source=[7, 5, 3], is_open=True)
    sentences.write_sentences(path(tmp_path, record), record.run, made)
    kept = artifacts.read(path(tmp_path, record), "dev")
    assert kept
    assert {*kept.columns} == {"hypothesis", "reference", "source"}
    assert not list(sentences.faults(tmp_path, record))
    sides = made["dev"][:2]
    assert summands(tmp_path, record) == sentences.ngram_counts(*sides, "de")[0].tolist()
    places = sentences.read_places(tmp_path, record, "dev")
    assert places is not None
    assert places.source == [7, 5, 3]
    assert np.array_equal(places.thirds, sentences.ngram_counts(*sides, "de", n=3))
    changed(path(tmp_path, record), reference=["der", "die", "das"])
    with pytest.raises(ValueError, match="dev: expected counts that give the record's BLEU of"):
        sentences.read_counts(tmp_path, record)


def test_missing_translations_are_named(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    file = own_file(path(tmp_path, record), "test")
    kept = file.read_bytes()
    file.unlink()
    assert list(sentences.faults(tmp_path, record)) == ["its translations of test are missing"]
    with pytest.raises(FileNotFoundError, match="expected translations of test beside it, found none"):
        sentences.read_hypotheses(path(tmp_path, record), "test")
    file.write_bytes(kept)
    assert not list(sentences.faults(tmp_path, record))
    other = replace(record, seed=9)
    nothing: Any = {split: dict.fromkeys(record.scores[split]) for split in ("dev", "test")}  # type: ignore[literal-required]
    assert not list(sentences.faults(tmp_path, replace(other, status="diverged", scores=nothing)))


def changed(place: Path, about: dict[str, Any] | None = None, **columns: Any) -> None:
    """What stands beside the record at `place`, with something else in it and checksums that are right."""
    found = artifacts.read(place, "dev")
    assert found
    artifacts.write(place, "dev", Artifact({**found.about, **(about or {})}, {**found.columns, **columns}))


def test_the_translations_of_another_seed_are_known_as_such(tmp_path: Path) -> None:
    one, other = run(1), run(2)
    leave(tmp_path, [one, other])
    mine, theirs = (path(tmp_path, record) for record in (one, other))
    changed(mine, hypothesis=hypotheses(2, "dev"))
    assert list(sentences.faults(tmp_path, one)) == ["other translations of dev stand beside it than were scored"]
    for split in ("dev", "test"):
        found = artifacts.read(theirs, split)
        assert found
        artifacts.write(mine, split, found)
    [said] = sentences.faults(tmp_path, one)
    assert f"expected dev of run {one.run}, got that of run {other.run}. Restore the file from git" in said
    assert are_of(mine, other.run)


def test_counts_that_cannot_be_are_refused(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    fewer: Any = {**record.corpus, "n_dev": 2}
    with pytest.raises(ValueError, match="expected 2 sentences, got 3"):
        sentences.read_counts(tmp_path, replace(record, corpus=fewer))
    changed(path(tmp_path, record), **{"bleu/1": np.array([1, 1, 1])})
    with pytest.raises(ValueError, match="dev: expected counts that give the record's BLEU of"):
        sentences.read_counts(tmp_path, record)


def test_counts_are_read_once_and_again_where_the_file_or_the_record_is_another(tmp_path: Path) -> None:
    record = run(1)
    leave(tmp_path, [record])
    assert sentences.read_counts(tmp_path, record) is sentences.read_counts(tmp_path, record) is not None
    with pytest.raises(ValueError, match="expected dev of run f"):
        sentences.read_counts(tmp_path, replace(record, run="f" * 16))
    changed(path(tmp_path, record), {"run": "e" * 16})
    with pytest.raises(ValueError, match="got that of run e"):
        sentences.read_counts(tmp_path, record)


# Counts of sentences


GOLDEN = Path(__file__).parents[1] / "decoding" / "golden"


def read(name: str) -> list[str]:
    return (GOLDEN / name).read_bytes().decode().split("\n")[:-1]


@pytest.mark.parametrize(("language", "in_tokens"), [("de", False), ("fr", True)])
def test_sums_of_counts_give_the_score(language: str, in_tokens: bool) -> None:
    hypotheses, references = read(f"hyp.{language}"), read(f"ref.{language}")
    if in_tokens:
        moses = MosesTokenizer(language)
        hypotheses, references = (
            [moses.tokenize(line, return_str=True) for line in side] for side in (hypotheses, references)
        )
    found = sentences.ngram_counts(hypotheses, references, language, in_tokens=in_tokens)[0]
    for lines in (slice(None), slice(0, 23)):
        score = sacrebleu_score(hypotheses[lines], references[lines], language, are_tokens=in_tokens)
        sums = found[lines].sum(0)
        assert sentences.bleu(sums) == pytest.approx(score.bleu, abs=1e-9)
        assert (sums[0], sums[1]) == (score.hyp_len, score.ref_len)


@example(["", "das ist gut"])
@given(st.lists(st.text("ab1-.,&;'\"<>()%„ \u00a0\t").filter(lambda line: "\n" not in line), min_size=1))
def test_counts_are_sacrebleus_line_by_line(lines: list[str]) -> None:
    references = [line[1:] + "a a, a." for line in lines]
    [found] = sentences.ngram_counts(lines, references, "de")
    for i, pair in enumerate(zip(lines, references, strict=True)):
        theirs = BLEU(force=True).corpus_score([pair[0]], [[pair[1]]])
        assert found[i].tolist() == [theirs.sys_len, theirs.ref_len, *theirs.counts, *theirs.totals]


def test_characters_are_counted_where_words_have_no_blanks() -> None:
    [found] = sentences.ngram_counts(["我喜欢狗。"], ["我喜欢猫。"], "zh")
    assert found.tolist() == [[5, 5, 4, 2, 1, 0, 5, 4, 3, 2]]
    parts = sentences.ngram_counts(["我喜欢狗。吗"], ["我喜欢猫。吗"], "zh", n=3)
    assert [part[0, 2:6].tolist() for part in parts] == [[2, 1, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0]]


def test_thirds_by_hand() -> None:
    # 7 words are cut 2, 2, 3; the reference's 8 are cut 2, 3, 3; marks are words of their own
    hypotheses, references = ["a b c d e f ."], ["a b x c d e f ."]
    parts = sentences.ngram_counts(hypotheses, references, "de", n=3)
    assert [one[0, :6].tolist() for one in parts] == [[2, 2, 2, 1, 0, 0], [2, 3, 2, 1, 0, 0], [3, 3, 3, 2, 1, 0]]
    # they hold every token once, and short lines leave some empty
    hypotheses, references = read("hyp.de"), read("ref.de")
    [whole] = sentences.ngram_counts(hypotheses, references, "de")
    parts = sentences.ngram_counts(hypotheses, references, "de", n=3)
    assert np.sum(parts, axis=0)[:, :2].tolist() == whole[:, :2].tolist()
    short = sentences.ngram_counts(["a", ""], ["a b", "c"], "de", n=3)
    assert [part[:, 0].tolist() for part in short] == [[0, 0], [0, 0], [1, 0]]


# Brackets


BRACKETS = {
    "dev": sentences.Brackets(
        np.array([4, 9, 2, 7, 7]),
        np.array([2, 6, 1, 4, 3]),
        np.array([2, 5, 2, 4, 5]),
        np.array([2, 3, 1, 4, 1]),
        {"a leaf missing": np.array([0, 1, 0, 0, 0]), "never closed": np.array([0, 2, 0, 0, 1])},
    ),
    "test": sentences.Brackets(np.array([3, 3, 3]), np.array([1, 2, 1]), np.array([1, 2, 2]), np.array([1, 1, 1]), {}),
}


def parser_run(results: Path) -> Record:
    """A record of which the scores are those of BRACKETS, with its brackets beside it."""
    return parser(results, "WSJ only", 4, BRACKETS, run="0123456789abcdef", corpus="wmt14")


def test_scores_by_hand() -> None:
    assert BRACKETS["dev"].scores() == {
        "f1": pytest.approx(100 * 2 * 11 / (16 + 18)),
        "precision": pytest.approx(100 * 11 / 16),
        "recall": pytest.approx(100 * 11 / 18),
        "exact": 40.0,
        "mended": 40.0,
    }
    # the third, the first; the two of 7 words in their order; the one of 9: parts of 2, 2 and 1
    assert BRACKETS["dev"].by_length() == pytest.approx([100 * 6 / 7, 100 * 10 / 16, 100 * 6 / 11])
    nothing = sentences.Brackets(*(np.zeros(0, np.int64) for _ in range(4)), {})  # type: ignore[arg-type]
    assert set(nothing.scores().values()) == {0.0}


def test_scores_of_counts_are_those_of_the_task() -> None:
    """Outputs with words, brackets and tags left out, twice and in other places: sums of sentences are the score."""
    draw = random.Random(3)
    gold = [whole(tree) for tree in islice(gold_trees(5), 60)]
    outputs = []
    for line in gold:
        tokens = line.split()
        for _ in range(draw.randrange(4)):
            i, j = (draw.randrange(len(tokens)) for _ in range(2))
            tokens = [*tokens[:i], *tokens[i + draw.randrange(2) :], *tokens[j : j + draw.randrange(2)]]
        outputs.append(" ".join(tokens))
    found, scored = brackets_of(outputs, gold), Parsing().score(outputs, gold, in_tokens=False)
    assert 0 < found.scores()["mended"] < 100
    for name, value in found.scores().items():
        assert value == pytest.approx(scored[name]), name
    assert found.words.tolist() == [sum(token[0] not in "()" for token in line.split()) for line in gold]


def test_brackets_that_were_written_are_read_again_and_what_gives_other_scores_is_refused(tmp_path: Path) -> None:
    record = parser_run(tmp_path)
    assert repr(sentences.read_brackets(tmp_path, record)) == repr(BRACKETS)
    assert not [*sentences.faults(tmp_path, record)]
    dev = BRACKETS["dev"]._replace(found=np.array([2, 6, 1, 4, 4]))
    sentences.write_brackets(path(tmp_path, record), record.run, {**BRACKETS, "dev": dev})
    [said] = sentences.faults(tmp_path, record)
    assert "dev: expected brackets that give the record's f1 of" in said
    file = own_file(path(tmp_path, record), "dev")
    file.write_bytes(file.read_bytes()[:-9])
    [said] = sentences.faults(tmp_path, record)
    assert "is damaged" in said
    assert not are_of(path(tmp_path, record), record.run)
    file.unlink()
    assert [*sentences.faults(tmp_path, record)] == ["its brackets of dev and test are missing"]


def test_a_row_shows_f1_by_length_and_nothing_where_a_run_kept_no_brackets(tmp_path: Path) -> None:
    records = [parser(tmp_path, "WSJ only", seed, BRACKETS, run=f"{seed:016x}", corpus="wmt14") for seed in (4, 5)]
    frame = with_brackets(table(records), records, tmp_path)
    assert frame.loc[0, [*F1_THIRDS]].tolist() == pytest.approx(BRACKETS["dev"].by_length())
    next(tmp_path.rglob("*seed5.dev.parquet")).unlink()
    assert with_brackets(table(records), records, tmp_path)[[*F1_THIRDS]].isna().all(axis=None)
