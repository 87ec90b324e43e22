"""Scores by length and by position, lengths of translations, other sentences, and who learned faster."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_sentences import REFERENCES, ladder_run, with_scores
from paper_runs import paper_run
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample
from table_records import run as of_table

from repro.figures.scores import draw_text_sizes
from repro.figures.style import save
from repro.pages.columns import DELTA, OF_TRANSLATIONS, length_columns, row_column, tabled
from repro.results import details
from repro.results.frame import table
from repro.results.record import Record, path
from repro.results.sentences import Counts, Translated, bleu, ngram_counts, write_sentences


def counts(right: list[int]) -> Counts:
    """Sentences of 4 words, of which so many are right, and all longer n-grams as far as they go."""
    return np.array([[4, 4, *(max(0, n - k) for k in range(4)), 4, 3, 2, 1] for n in right], np.int32)


def test_parts_by_length_are_of_the_shortest_and_the_longest_whatever_their_order() -> None:
    # lengths 9 1 5 1 9 5 in this order: the shortest are sentences 1 and 3, of which all is right
    found = details.by_length(counts([0, 4, 3, 4, 1, 3]), [9, 1, 5, 1, 9, 5])
    assert found[0] == pytest.approx(100)
    middle = (6 / 8 * 4 / 6 * 2 / 4 * (1 / 2) / 2) ** 0.25  # no 4-gram is right: half of one
    assert found[1] == pytest.approx(100 * middle)
    assert found[2] == pytest.approx(100 * (1 / 8 * (1 / 2) / 6 * (1 / 4) / 4 * (1 / 8) / 2) ** 0.25)


def test_equally_long_sentences_stand_as_they_stood_and_parts_may_differ_by_one() -> None:
    whole = [4, 4, 0, 4, 4, 0, 4]
    parts = [whole[:3], whole[3:5], whole[5:]]
    assert details.by_length(counts(whole), [3] * 7) == [bleu(counts(part).sum(axis=0)) for part in parts]


def test_rows_without_counts_show_nothing(tmp_path: Path) -> None:
    records = [ladder_run(*of, tmp_path, places=of[0] == "One") for of in (("One", 1), ("Other", 2))]
    frame = details.with_parts(table(records), records, tmp_path).set_index("row")
    assert frame[[*details.THIRDS, details.KEPT]].isna().all(axis=1).to_dict() == {"One": False, "Other": True}


def test_a_row_keeps_the_mean_of_its_runs_and_nothing_where_one_has_nothing_to_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [ladder_run("One", 1, tmp_path), ladder_run("One", 3, tmp_path)]
    for firsts, kept in (([20.0, 40.0], 37.5), ([20.0, 0.0], np.nan)):
        of = iter([dict.fromkeys(details.THIRDS, 10.0) | {details.THIRDS[3]: first} for first in firsts])
        monkeypatch.setattr(details, "bleu_of_parts", lambda record, results, of=of: next(of))
        [line] = details.with_parts(table(records), records, tmp_path).to_dict("records")
        assert (line[details.THIRDS[3]], line[details.KEPT]) == pytest.approx((np.mean(firsts), kept), nan_ok=True)


# How long translations are, and how many are empty


WHOLE = REFERENCES["dev"]  # of 8, 6 and 3 words


def run(row: str, seed: int, dev: list[str], results: Path, table: str = "table3_A") -> Record:
    """A run that translated dev so, and test as its references are; no file beside it where dev is nothing."""
    hypotheses = {"dev": dev or WHOLE, "test": REFERENCES["test"]}
    made = {
        split: Translated(lines, REFERENCES[split], "en-de", in_tokens=False) for split, lines in hypotheses.items()
    }
    record = with_scores(paper_run(row, table, seed=seed, run=f"{len(row)}{seed:015x}"), made)
    if dev:
        write_sentences(path(results, record), record.run, made)
    return record


def test_empty_ones_are_counted_and_all_tokens_are_held_against_the_references(tmp_path: Path) -> None:
    records = [
        run("h=1", 1, ["", WHOLE[1], "das ist"], tmp_path),
        run("h=1", 2, [*WHOLE], tmp_path),
        run("h=4", 3, [f"{line} , ja" for line in WHOLE], tmp_path),
        run("h=16", 1, [*WHOLE], tmp_path),
        run("h=16", 2, [], tmp_path),
    ]
    made = details.with_lengths(table(records), records, tmp_path)
    found = made.set_index("row")
    assert found.loc["h=1", details.EMPTY] == pytest.approx(100 * (1 / 3 + 0) / 2)
    assert found.loc["h=1", [f"{details.RATIO}_min", f"{details.RATIO}_max"]].tolist() == pytest.approx([8 / 17, 1])
    assert found.loc["h=4", [details.EMPTY, details.RATIO]].tolist() == pytest.approx([0, 23 / 17])
    assert found.loc["h=16", [details.EMPTY, details.RATIO]].isna().all(), "one of its runs is not known"
    names, *others = tabled([row_column(made), *length_columns(made)]).columns
    columns = {column.heading: dict(zip(names.texts, column.texts, strict=True)) for column in others}
    assert {column.group for column in others} == {OF_TRANSLATIONS}
    assert [*columns["empty (%)"].values()] == ["16.7 [0.0, 33.3]", "0.0"], "of h=16 there is nothing to show"
    assert [*columns["length"].values()] == ["0.735 [0.471, 1.000]", "1.353"]
    assert DELTA not in columns, "there is no base"


def test_a_difference_of_lengths_is_over_common_seeds_and_says_where_it_decides(tmp_path: Path) -> None:
    # 16 of 17 words and all of them right, so less BLEU for the penalty alone; another word wrong, and no penalty
    short, wrong = [" ".join(WHOLE[0].split()[:-1]), *WHOLE[1:]], [f"x {WHOLE[0].split(' ', 1)[1]}", *WHOLE[1:]]
    base = [run("base", 1, short, tmp_path, table="base")]
    records = [run("h=1", 1, wrong, tmp_path), run("h=1", 2, [*WHOLE], tmp_path), run("h=4", 2, [*WHOLE], tmp_path)]
    of_other_text = {**records[0].corpus, "sha256": "cd"}
    records.append(replace(run("other", 1, wrong, tmp_path), corpus=of_other_text))
    made = details.with_lengths(table(records, base=base), [*base, *records], tmp_path)
    assert [column.texts for column in length_columns(made) if column.heading == DELTA] == [["", "+0.059", "", ""]]


@pytest.mark.parametrize(
    ("bleus", "lengths", "decides"),
    [
        ((20.0, 25.0), (0.8, 1.0), True),  # 20 e^0.25 = 25.7: better words, and fewer of them
        ((20.0, 25.0), (0.85, 1.0), False),  # 20 e^0.176 = 23.9
        ((25.0, 24.0), (1.2, 0.9), True),  # 24 e^0.111 = 26.8; what is too long has no penalty
        ((30.0, 29.0), (1.2, 0.99), False),  # and no bonus
        ((0.0, 20.0), (0.1, 1.0), False),
    ],
)
def test_length_decides_where_bleu_without_its_penalty_has_the_other_sign(
    bleus: tuple[float, float], lengths: tuple[float, float], decides: bool
) -> None:
    assert details.length_decides(bleus[0] - bleus[1], bleus, lengths) == decides


# On other sentences: against sacreBLEU's own test

N = 23  # sentences
WORDS = ["der", "die", "das", "Hund", "Katze", "Mann", "läuft", "schläft", "sieht", "heute", "schnell", "und", "gut"]


def text(seed: int, damage: float, references: list[str]) -> list[str]:
    """The references with words exchanged, much in some lines and little in others."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < damage * rng.random() * 2 else word for word in line.split())
        for line in references
    ]


RANDOM = np.random.default_rng(7)
LINES = [" ".join(RANDOM.choice(WORDS, size=RANDOM.integers(4, 15))) for _ in range(N)]
GOOD = [text(seed, 0.20, LINES) for seed in (4, 5, 6)]
BAD = [text(seed, 0.28, LINES) for seed in (40, 50, 60)]


def counted(hypotheses: list[str]) -> Counts:
    return ngram_counts(hypotheses, LINES, "de")[0]


def resampled(hypotheses: list[str]) -> list[float]:
    """BLEU of each of sacreBLEU's resamples, by sacreBLEU."""
    assert "SACREBLEU_SEED" not in os.environ
    metric = BLEU()
    stats = metric._extract_corpus_statistics(hypotheses, [LINES])
    return [one.score for one in _bootstrap_resample(stats, metric, details.RESAMPLES)[1]]


def test_one_run_of_each_row_is_sacrebleus_own_test() -> None:
    got = details.over_sentences([counted(GOOD[0])], [counted(BAD[0])])
    drawn = np.array(resampled(GOOD[0])) - np.array(resampled(BAD[0]))
    theirs = np.sort(drawn)
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits
    scores = [BLEU().corpus_score(lines, [LINES]).score for lines in (GOOD[0], BAD[0])]
    assert got.value == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert got.n_sentences == N
    systems = [("other", BAD[0]), ("one", GOOD[0])]
    tested: Any = PairedTest(systems, {"BLEU": BLEU()}, [LINES], test_type="bs")()[1]["BLEU"][1]
    beyond = ((np.abs(drawn) - np.abs(drawn).mean()) > abs(got.value)).sum()
    assert tested.p_value == pytest.approx((beyond + 1) / (details.RESAMPLES + 1))


def test_several_seeds_are_the_mean_of_their_paired_differences_on_the_same_draws() -> None:
    got = details.over_sentences([*map(counted, GOOD)], [*map(counted, BAD)])
    pairs = [np.array(resampled(a)) - np.array(resampled(b)) for a, b in zip(GOOD, BAD, strict=True)]
    theirs = np.sort(np.mean(pairs, axis=0))
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits


def test_runs_of_two_texts_are_no_pair() -> None:
    whole = counted(GOOD[0])
    with pytest.raises(ValueError, match="expected runs of one text"):
        details.over_sentences([whole], [whole[:-1]])


# How rows learned


BASE_CURVE = {10: 5.0, 20: 3.0, 40: 1.0}


def learned(
    row: str = "base", seed: int = 1, dev: dict[int, float] = BASE_CURVE, flops: float = 4e9, **other: Any
) -> Record:
    """A record whose dev loss is `dev` by update, after 40 updates."""
    record = paper_run(row, "base" if row == "base" else "ladder", seed=seed, **other)
    curve: Any = {"step": [*dev], "nll": [*dev.values()]}
    cost: Any = {**record.cost, "steps": 40, "flops": flops}
    return replace(record, curves={"train": curve, "dev": curve}, cost=cost)


def band(*points: tuple[float, float]) -> details.Band:
    step, mean = zip(*points, strict=True)
    return details.Band("x", 1, step, mean, mean, mean)


def test_mean_and_range_by_hand() -> None:
    runs = [learned("h=1", 1, {10: 4.0, 20: 2.0}), learned("h=1", 2, {10: 5.0, 20: 2.5, 30: 1.0})]
    assert details.bands(runs, "dev") == [
        details.Band("h=1 (here 8)", 2, (10, 20), (4.5, 2.25), (4.0, 2.0), (5.0, 2.5))
    ]


def test_base_comes_first_then_the_papers_order_without_diverged_and_uncommitted_runs() -> None:
    dirty = learned("h=4")
    dirty = replace(dirty, stamp={**dirty.stamp, "dirty": True, "why_dirty": "not committed: x"})
    runs = [learned("b", position=1), learned("a", position=2), learned("base"), learned("c", position=0)]
    assert list(details.rows_of([*runs, learned("h=1", 2, status="diverged"), dirty])) == ["base", "c", "b", "a"]


def test_over_operations_the_rival_that_costs_twice_is_behind_all_along() -> None:
    rival = learned("ByteNet", dev={10: 4.0, 20: 4.0, 40: 4.0}, flops=8e9)
    one, other = details.bands([learned(), rival], "dev", "FLOPs")
    assert one.step == (1e9, 2e9, 4e9)
    assert other.step == (2e9, 4e9, 8e9)
    assert details.crossings(*details.bands([learned(), rival], "dev")) == (15.0,)
    assert details.crossings(one, other) == ()  # both are measured from 2e9 on, and there the base is ahead
    assert details.crossings(one, replace(one, mean=(6.0, 2.0, 2.0))) == pytest.approx([1.5e9, 3e9])


@pytest.mark.parametrize(
    ("gaps", "found"),
    [
        ((1.0, -3.0), (12.5,)),
        ((1.0, 0.0, -3.0), (20.0,)),  # not on the straight line from 10 to 30
        ((1.0, 0.0, 1.0), ()),  # they touch
        ((0.0, 1.0, -1.0), (25.0,)),
        ((0.0, 0.0), ()),
        ((1.0, -1.0, 1.0), (15.0, 25.0)),
    ],
)
def test_where_two_curves_cross(gaps: tuple[float, ...], found: tuple[float, ...]) -> None:
    steps = [10.0 * (i + 1) for i in range(len(gaps))]
    one, other = band(*((x, 2.0) for x in steps)), band(*((x, 2.0 - gap) for x, gap in zip(steps, gaps, strict=True)))
    assert details.crossings(one, other) == pytest.approx(found)
    assert details.crossings(other, one) == pytest.approx(found)


def longer(record: Record) -> Record:
    """The same with three times the updates in its row."""
    return replace(record, hyper={**record.hyper, "steps": 3 * record.hyper["steps"]})


def test_a_row_is_beside_the_transformer_with_as_many_updates_else_the_base() -> None:
    base, more = [learned()], [longer(learned("more", dev={10: 6.0, 20: 2.0, 80: 0.5}, flops=8e9))]
    rival = [longer(learned("rival", dev={10: 4.0, 20: 2.5, 80: 0.25}, flops=8e9, system="SoftAlignment"))]
    equal = [learned("equal", dev={10: 4.5}, system="ByteNet")]
    alone = [replace(longer(learned("alone", dev={20: 3.5}, system="ConvS2S")), hyper={**learned().hyper, "steps": 7})]
    assert details.compared([base, [learned("h=1", 2)]]) == {}, "no seed in common"
    found = details.compared([[*base, learned("base", 2, {20: 9.0})], more, rival, equal, alone])
    beside = {"more": "base", "rival": "more", "equal": "base", "alone": "base"}
    assert {row: of["along/beside"] for row, of in found.items()} == beside
    said = {"updates/crossings": "18, 60", "updates/gap": -0.25, "FLOPs/crossings": "3.6e9, 1.2e10"}
    assert {name: found["rival"][f"along/{name}"] for name in said} == said
    # the base ends at 40 updates and 4e9 FLOPs; the longer row is there after 20 updates
    assert [found["more"][f"along/{over}/gap"] for over in details.OVERS] == pytest.approx([1.5 - 1.0, 2.0 - 1.0])


def test_the_frame_says_it_of_each_row_that_has_a_curve() -> None:
    rival = learned("rival", dev={10: 4.0, 20: 4.0, 40: 4.0}, flops=8e9, system="ByteNet")
    silent = learned("silent", dev={}, system="ConvS2S")
    records = [learned(), rival, silent]
    frame = details.with_comparisons(made := table(records), records)
    columns = ["along/beside", *(f"along/{over}/{of}" for over in details.OVERS for of in ("crossings", "gap"))]
    assert frame[frame["row"] == "rival"][columns].to_numpy().tolist() == [["base", "15", 3.0, "nowhere", 3.0]]
    assert list(frame["along/beside"].notna()) == [False, True, False]
    assert frame.attrs == made.attrs
    assert "along/beside" not in details.with_comparisons(table([learned(), silent]), [learned(), silent])
    assert "along/beside" not in details.with_comparisons(table([rival]), [rival])


# On little text and on much: beside the base of the same text and seed, and of no other


def on(pairs: int, row: str, seed: int, bleu: float, *, is_base: bool, **other: Any) -> Record:
    """A run on so much text, whose name on more than 3,000 pairs is another."""
    like = of_table("base" if is_base else "h=1")
    name = row if pairs == 3_000 else f"{row}, text x {pairs // 3_000}"
    corpus = {**like.corpus, "n_train": pairs}
    return of_table(name, seed, bleu=bleu, ppl=100 / bleu, corpus=corpus, hyper=like.hyper, **other)


RUNS = [
    *(on(3_000, "base", seed, 50.0 + seed, is_base=True) for seed in (1, 2, 3, 4)),
    *(on(6_000, "base", seed, 60.0 + seed, is_base=True) for seed in (1, 2)),
    on(12_000, "base", 9, 70.0, is_base=True),
    *(on(6_000, "h=1", seed, 61.0 + seed, is_base=False) for seed in (1, 2)),
    *(on(3_000, "h=1", seed, 50.0 + seed + more, is_base=False) for seed, more in ((2, -2.0), (3, -3.0), (4, -4.0))),
    on(12_000, "h=1", 8, 90.0, is_base=False),  # whose seed the base has not
    on(24_000, "h=1", 1, 90.0, is_base=False),  # where there is no base
]


def test_each_row_stands_beside_the_base_of_its_text_and_seed_and_is_drawn_so(tmp_path: Path) -> None:
    [(row, found)] = details.on_texts(RUNS).items()
    assert row == "h=1", "as it is called on the first text"
    assert [(one.pairs, one.of_mean) for one in found] == [(3_000, None), (6_000, None)]
    few, more = (one.found for one in found)
    assert few[::2] == (3, (-3.0, pytest.approx(4.303 / 3**0.5, abs=1e-3)))
    assert more[::2] == (2, (1.0, None))
    assert more.nll[0] < 0 < few.nll[0]
    lines = [line.split(",") for line in save(tmp_path, draw_text_sizes(RUNS)[1]).read_text("utf-8").splitlines()[1:]]
    assert [[line[0], *line[2:4], line[6]] for line in lines] == [["h=1", "3000", "3", "-3"], ["h=1", "6000", "2", "1"]]


def test_by_the_mean_of_the_last_checkpoints_it_is_over_the_seeds_that_were_scored_so() -> None:
    def scored(record: Record, bleu: float) -> Record:
        dev = {**record.scores["dev"], "bleu": bleu}
        of_mean: Any = {"steps": [1, 2], "weights": "ab" * 32, "seconds": 1.0, "dev": dev, "test": dev}
        return replace(record, last_mean=of_mean)

    [base, other], [row, second] = RUNS[4:6], RUNS[7:9]
    alike = [scored(base, 70.0), scored(other, 80.0), scored(row, 72.0), scored(second, 86.0)]
    for runs, n, mean in ((alike, 2, 4.0), ([*alike[:3], second], 1, 2.0)):
        [found] = details.on_texts([*RUNS[:4], *runs])[row.row]
        assert [one[::2] for one in found[1:]] == [(2, (1.0, None)), (n, (mean, None))]


def test_other_languages_and_other_corpora_are_none_of_these_texts() -> None:
    french = on(6_000, "h=1", 1, 90.0, is_base=False, pair="en-fr")
    assert [one.pairs for one in details.on_texts([*RUNS[:4], french, *RUNS[9:12]])["h=1"]] == [3_000]
    assert details.on_texts(RUNS[4:]) == {}, "without the base"
