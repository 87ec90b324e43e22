"""A run against the same run written out by hand: training, averaging, search and scores of a text made up here.

The source has two to four words a line, the target five to sixteen, and no word stands on both sides.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from decoding.test_beam import loop_search
from own_signals import own_signals, places
from text_folders import text_folder
from torch import Tensor

from repro.claims.catalogue import catalogue_digest
from repro.corpora.catalogue import open_corpus
from repro.corpora.prepare import prepare
from repro.data.batch import Batch
from repro.data.batching import Plan
from repro.data.shards import Prepared, Side
from repro.data.vocabulary import Subwords
from repro.decoding import backend as backends
from repro.decoding.search import Search
from repro.decoding.translate import TokenScores
from repro.experiment import Paper, Row, main
from repro.model.config import Hyper
from repro.model.transformer import Transformer
from repro.results import record
from repro.results.sentences import faults, read_hypotheses
from repro.runs.command import Signals
from repro.runs.run import Run
from repro.runs.scales import SCALES
from repro.storage.journal import Journal
from repro.storage.journal import read as read_journal
from repro.training import stages
from repro.training.checkpoint import checkpoints, path_of, step_of, weights
from repro.training.module import random_seed

SOURCE = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TARGET = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf"]
SIZES = {"train": 100, "dev": 24, "test": 5}
STEPS, AVERAGED, LAST, SEED = 10, (4, 7, 10), (1, 4, 7, 10), 2
CHANGE = {"dropout": 0.0, "warmup": 50, "average": 3, "average_every": 3}
SMOKE = SCALES["smoke"]


def lines(split: str) -> list[tuple[str, str]]:
    """Pairs of lines. In dev targets are in turn long, of words that were learned, and short, of one that was not."""
    first = 1_000 * [*SIZES].index(split)
    made = []
    for i in range(first, first + SIZES[split]):
        source = [SOURCE[(i * i // (k + 1) + k) % 10] for k in range(2 + i % 3)]
        target = [TARGET[(i + k * k) % 11] for k in range(5 + 7 * i % 12 if split != "dev" else 24)]
        made.append((" ".join(source), "Zug Zug" if split == "dev" and i % 2 else " ".join(target)))
    return made


def write_text(folder: Path, text: Callable[[str], list[tuple[str, str]]]) -> None:
    text_folder(folder, **{split: text(split) for split in SIZES})


def make(folder: Path, *more: str) -> None:
    """Run one row of this text in `folder`, by the command line."""
    row = Row("by hand", lambda base: replace(base, **CHANGE), Paper(ppl=1.0))
    text = ["--scale=smoke", "--corpus=folder", f"--data-dir={folder / 'text'}", "--vocab-size=320"]
    with own_signals():
        main("table_x", [row], [*text, *places(folder, "--rows=by hand", *more)])


def prepared(folder: Path) -> Prepared:
    cache = folder / "cache"
    corpus = open_corpus("folder", "en-de", data_dir=folder / "text", cache=cache)
    return prepare(corpus, subwords=Subwords("bpe", 320), cache=cache, max_length=SMOKE.max_length)


@dataclass(frozen=True)
class Made:
    """What the command left of one seed, and the ids of the text."""

    folder: Path
    record: record.Record
    ids: dict[str, list[tuple[Tensor, Tensor]]]  # of each split: source and target, each with its end
    n_tokens: int
    data_hash: str

    @property
    def runs(self) -> Path:
        return self.folder / "runs" / self.record.run

    @property
    def hyper(self) -> Hyper:
        return replace(SMOKE.base, steps=STEPS, **CHANGE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    write_text(folder / "text", lines)
    make(folder, f"--steps={STEPS}", f"--seeds={SEED}")
    [done] = [one for path in (folder / "runs").glob("*/record.json") if (one := record.load(path)).seed == SEED]
    text = prepared(folder)

    def encoded(line: str) -> Tensor:
        return torch.from_numpy(text.tokenizer.encode([line])[0].astype(np.int64))

    ids = {split: [(encoded(source), encoded(target)) for source, target in lines(split)] for split in SIZES}
    return Made(folder, done, ids, text.tokenizer.size, text.data_hash)


# By hand: sentence by sentence, without batches, padding, buckets or caches; all in float64.


def log_probs(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """[T, V] of each next token, after padding and all the tokens before it."""
    read = torch.cat([torch.zeros(1, dtype=torch.int64), target[:-1]])
    return model(source[None], read[None])[0].log_softmax(-1)


def tokens_by_hand(model: Transformer, pairs: Iterable[tuple[Tensor, Tensor]]) -> TokenScores:
    """Sums over all tokens of a split / their number."""
    total, n_right, n = 0.0, 0, 0
    with torch.no_grad():
        for source, target in pairs:
            log_p = log_probs(model, source, target)
            for t, gold in enumerate(target.tolist()):
                row = log_p[t].tolist()
                total -= row[gold]
                n_right += gold == row.index(max(row))
                n += 1
    return TokenScores(nll=total / n, accuracy=n_right / n)


@dataclass(frozen=True)
class ByHand:
    losses: list[float]  # of each update: sum over its tokens
    nlls: list[float]
    n_source: list[int]
    n_target: list[int]
    models: dict[int, dict[str, Tensor]]  # weights after some steps


@pytest.fixture(scope="module")
def by_hand(made: Made) -> ByHand:
    """Sections 5.3 and 5.4: Adam by its formulas, the printed rate, smoothed targets written out."""
    torch.manual_seed(random_seed(SEED, -1, 0))
    model = Transformer(made.hyper, made.n_tokens).double()
    parameters = list(model.parameters())
    first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    train, done = made.ids["train"], ByHand([], [], [], [], {})
    sides = [np.array([len(pair[side]) for pair in train]) for side in range(2)]
    plan = Plan(sides[0], sides[1], budget=SMOKE.batch_tokens, data_hash=made.data_hash, seed=SEED).updates()
    for step, update in enumerate(islice(plan, STEPS), start=1):
        pairs = [train[i] for i in update.sentences.tolist()]
        loss, nll = torch.zeros((), dtype=torch.float64), 0.0
        for source, target in pairs:
            log_p = log_probs(model, source, target)
            gold = (torch.arange(len(target)), target)
            smoothed = torch.full_like(log_p, 0.1 / (made.n_tokens - 1))
            smoothed[gold] = 0.9
            loss = loss - (smoothed * log_p).sum()
            nll -= log_p[gold].sum().item()
        n = sum(len(target) for _, target in pairs)
        gradients = torch.autograd.grad(loss / n, parameters)
        rate = 64**-0.5 * min(step**-0.5, step * 50**-1.5)
        with torch.no_grad():
            for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
                m.copy_(0.9 * m + 0.1 * g)
                v.copy_(0.98 * v + 0.02 * g**2)
                p -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.98**step)).sqrt() + 1e-9)
        done.losses.append(loss.item())
        done.nlls.append(nll)
        done.n_source.append(sum(len(source) for source, _ in pairs))
        done.n_target.append(n)
        done.models[step] = {name: x.clone() for name, x in model.state_dict().items()}
    return done


def with_weights(made: Made, state: dict[str, Tensor]) -> Transformer:
    model = Transformer(made.hyper, made.n_tokens).double().eval()
    model.load_state_dict(state)
    return model


def mean(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: sum(state[name].double() for state in states) / len(states) for name in states[0]}  # type: ignore[misc]


def test_the_text_is_one_where_mistakes_show(made: Made, by_hand: ByHand) -> None:
    assert len({*by_hand.n_target}) > 2, "updates of unequal size"
    assert sum(by_hand.n_target) > 2 * sum(by_hand.n_source)
    epoch = sum(len(target) for _, target in made.ids["train"])
    assert sum(by_hand.n_target) > 2 * epoch, "more than one epoch"
    assert epoch > 2 * max(by_hand.n_target), "of several updates"
    assert by_hand.losses[-1] / by_hand.n_target[-1] < 0.9 * by_hand.losses[0] / by_hand.n_target[0], "it learns"


def test_losses_and_rates_are_those_of_the_training_written_by_hand(made: Made, by_hand: ByHand) -> None:
    logged = {line["step"]: line for line in read_journal(made.runs / "journal.jsonl") if line["kind"] == "train"}
    assert [*logged] == [5, 10]
    for last, line in logged.items():
        window = slice(last - 5, last)
        n = sum(by_hand.n_target[window])
        assert line["loss"] == pytest.approx(sum(by_hand.losses[window]) / n, rel=1e-4)
        assert line["nll"] == pytest.approx(sum(by_hand.nlls[window]) / n, rel=1e-4)
        assert line["lr"] == pytest.approx(64**-0.5 * last * 50**-1.5, rel=1e-9)


def test_what_was_read_is_counted_by_sides(made: Made, by_hand: ByHand) -> None:
    assert made.record.cost["steps"] == STEPS
    assert made.record.cost["source_tokens"] == sum(by_hand.n_source)
    assert made.record.cost["target_tokens"] == sum(by_hand.n_target)
    corpus = made.record.corpus
    assert [corpus["n_train"], corpus["n_dev"], corpus["n_test"]] == [*SIZES.values()]
    assert made.record.params["here"] == sum(p.numel() for p in Transformer(made.hyper, made.n_tokens).parameters())


def test_curves_are_those_of_their_split(made: Made, by_hand: ByHand) -> None:
    dev = tokens_by_hand(with_weights(made, by_hand.models[STEPS]), made.ids["dev"]).nll
    assert made.record.curves["dev"]["step"] == [STEPS]
    assert made.record.curves["dev"]["nll"] == pytest.approx([dev], rel=1e-4)
    halves = [slice(0, 5), slice(5, 10)]
    train = [sum(by_hand.nlls[half]) / sum(by_hand.n_target[half]) for half in halves]
    assert made.record.curves["train"]["nll"] == pytest.approx(train, rel=1e-4)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_perplexity_is_that_of_all_pieces_under_the_averaged_weights(made: Made, by_hand: ByHand, split: str) -> None:
    model = with_weights(made, mean([by_hand.models[step] for step in AVERAGED]))
    expected, score = tokens_by_hand(model, made.ids[split]), made.record.scores[split]  # type: ignore[literal-required]
    assert score["nll"] == pytest.approx(expected.nll, rel=1e-4)
    assert score["ppl"] == pytest.approx(math.exp(expected.nll), rel=1e-3)
    assert score["accuracy"] == expected.accuracy
    [last] = [line for line in read_journal(made.runs / "journal.jsonl") if line["kind"] == "final"]
    for name in ("nll", "ppl", "accuracy", "bleu"):  # as MLflow has it: final/dev_accuracy
        assert last[f"{split}_{name}"] == score[name]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_mean_of_the_last_checkpoints_is_scored_beside_them(made: Made, by_hand: ByHand, split: str) -> None:
    found = made.record.last_mean
    assert found is not None
    assert found["steps"] == [*LAST]  # ten, or all that so short a run has
    model = with_weights(made, mean([by_hand.models[step] for step in LAST]))
    expected, score = tokens_by_hand(model, made.ids[split]), found[split]  # type: ignore[literal-required]
    assert score["nll"] == pytest.approx(expected.nll, rel=1e-4)
    assert score["accuracy"] == expected.accuracy
    assert abs(score["nll"] - made.record.scores[split]["nll"]) > 1e-3  # type: ignore[literal-required]
    [last] = [line for line in read_journal(made.runs / "journal.jsonl") if line["kind"] == "final"]
    for name in ("nll", "ppl", "accuracy", "bleu", "length"):  # as MLflow has it: final/last_mean_dev_bleu
        assert last[f"last_mean_{split}_{name}"] == score[name]


def test_where_it_is_the_papers_mean_nothing_is_translated_again(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, real = [], stages.score
    monkeypatch.setattr(stages, "score", lambda *of: asked.append(len(of[3])) or real(*of))
    write_text(tmp_path / "text", lines)
    make(tmp_path, "--steps=7", f"--seeds={SEED}-{SEED}")  # of which the checkpoints 1, 4 and 7 are both
    [path] = (tmp_path / "runs").glob("*/record.json")
    done, text = record.load(path), prepared(tmp_path)
    assert asked == [len(text.dev), len(text.test)]
    assert done.last_mean
    assert done.determinism
    assert (done.last_mean["steps"], done.last_mean["weights"]) == ([1, 4, 7], done.determinism["weights"])
    for split, of in (("dev", text.dev), ("test", text.test)):
        hypotheses = (path.parent / f"{split}.hyp").read_text("utf-8").split("\n")[:-1]
        found = sacrebleu.corpus_bleu(hypotheses, [of.references])
        length = found.sys_len / found.ref_len
        assert done.last_mean[split] == {**done.scores[split], "length": length}  # type: ignore[literal-required]


@pytest.mark.parametrize(("split", "n"), [("dev", 3), ("test", 5)])
def test_translations_are_those_of_the_plain_search(made: Made, split: str, n: int) -> None:
    # section 6.1: beam 4, alpha 0.6; at this scale at most 10 tokens more than the source
    kept = [weights(path_of(made.runs / "checkpoints", step), made.record.run) for step in AVERAGED]
    model, pairs = with_weights(made, mean(kept)).float(), made.ids[split][:n]

    @torch.no_grad()
    def after(sentence: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(log_probs(model, pairs[sentence][0], torch.tensor([*prefix, 0]))[-1].tolist())

    expected = [loop_search(after, i, len(source) + 10, width=4, alpha=0.6).ids for i, (source, _) in enumerate(pairs)]
    found = (made.runs / f"{split}.hyp").read_text("utf-8").split("\n")[:-1]
    assert len(found) == SIZES[split]
    tokenizer = prepared(made.folder).tokenizer
    assert found[:n] == [tokenizer.decode(ids) for ids in expected]


def test_translations_stand_beside_the_record_and_give_its_scores(made: Made) -> None:
    [place] = (made.folder / "results").glob(f"*/*/*-seed{SEED}.json")
    assert not list(faults(made.folder / "results", record.load(place)))
    for split in ("dev", "test"):
        assert read_hypotheses(place, split) == (made.runs / f"{split}.hyp").read_text("utf-8").split("\n")[:-1]


def test_a_finished_run_keeps_its_averaged_checkpoints_and_the_two_newest(made: Made) -> None:
    assert {*map(step_of, checkpoints(made.runs / "checkpoints"))} == {*AVERAGED, *LAST[-2:]} < {*LAST}
    assert made.record.claims == catalogue_digest(), "the list of claims of its time"


def test_a_run_that_goes_on_is_the_same_and_no_list_of_claims_is_made_up_for_it(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "text", lines)
    asked = iter([False] * 6)
    with monkeypatch.context() as then:
        then.setattr(Signals, "should_stop", lambda self: next(asked, True))
        with pytest.raises(SystemExit):
            make(tmp_path, f"--steps={STEPS}", f"--seeds={SEED}-{SEED}")
    [run] = tmp_path.glob("runs/*/")
    assert checkpoints(run / "checkpoints")
    (run / "run.json").unlink()  # which tells under which list it began
    make(tmp_path, f"--steps={STEPS}", f"--seeds={SEED}-{SEED}")
    done = record.load(run / "record.json")
    assert (done.claims, done.scores) == (None, made.record.scores)
    assert done.last_mean
    assert made.record.last_mean
    assert {**done.last_mean, "seconds": 0} == {**made.record.last_mean, "seconds": 0}


# Scores: a backend that knows by heart what to answer.


def answers(split: str) -> list[tuple[str, str, str]]:
    """Source, reference and translation: of dev's nine words the last is missing, of test's eight the last three."""
    n, missing = {"train": (8, 0), "dev": (9, 1), "test": (8, 3)}[split]
    words = [[*(TARGET[(i + k) % 11] for k in range(n - 1)), "Sehr-gut"] for i in range(SIZES[split])]
    return [(f"{split} {i}", " ".join(line), " ".join(line[: n - missing])) for i, line in enumerate(words)]


@dataclass(frozen=True)
class ByHeart:
    """Answers what was written down for a source; its perplexity and accuracy tell what it was asked about."""

    text: Prepared

    def score_tokens(self, batches: Iterable[Batch]) -> TokenScores:
        n = sum(batch.n_target for batch in batches)
        return TokenScores(nll=n / 1_000, accuracy=1 / n)

    def translate(self, source: Side, search: Search, *, between: Callable[[int], None]) -> list[Sequence[int]]:
        """A run searches as the paper does, but for the length of outputs at this scale."""
        assert search == Search(beam=4, alpha=0.6, extra=10)
        tokenizer = self.text.tokenizer
        known = {one: translation for split in SIZES for one, _, translation in answers(split)}
        between(len(source.lengths))
        asked = [tokenizer.decode(source.sentence(i)) for i in range(len(source.lengths))]
        return [tokenizer.encode([known[one]])[0].tolist()[:-1] for one in asked]


def made_by(kind: type[ByHeart], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run seven updates, and score with such a backend."""

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[backends.Backend]:
        yield kind(prepared(folder))

    monkeypatch.setattr(backends, "opened", opened)
    write_text(folder / "text", lambda split: [(source, reference) for source, reference, _ in answers(split)])
    make(folder, "--steps=7")


def test_each_split_is_scored_on_its_own_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by(ByHeart, tmp_path, monkeypatch)
    [done] = [record.load(path) for path in (tmp_path / "runs").glob("*/record.json")]
    text = prepared(tmp_path)
    # All that is there is right, so BLEU is the brevity penalty alone, e^(1 - reference / translation): 9 / 8 and 8 / 5
    # words. As published, Sehr-gut counts three.
    for split, bleu, published in (
        ("dev", 100 * math.exp(1 - 9 / 8), 100 * math.exp(1 - 11 / 8)),
        ("test", 100 * math.exp(1 - 8 / 5), 100 * math.exp(1 - 10 / 5)),
    ):
        score = done.scores[split]  # type: ignore[literal-required]
        assert (score["bleu"], score["bleu_published"]) == pytest.approx((bleu, published), abs=1e-6), split
        assert "tok:13a" in score["bleu_signature"]
        assert "tok:moses-de" in score["bleu_published_signature"]
        n_tokens = sum(len(text.tokenizer.encode([reference])[0]) for _, reference, _ in answers(split))
        assert (score["nll"], score["accuracy"]) == (n_tokens / 1_000, 1 / n_tokens)
        assert score["ppl"] == pytest.approx(math.exp(n_tokens / 1_000))
        assert done.last_mean
        of_mean = done.last_mean[split]  # type: ignore[literal-required]
        assert of_mean == {**score, "length": {"dev": 8 / 9, "test": 5 / 8}[split]}
        written = (tmp_path / "runs" / done.run / f"{split}.hyp").read_text("utf-8")
        assert written.split("\n") == [*(translation for _, _, translation in answers(split)), ""]


class Overflowing(ByHeart):
    """So sure of what is wrong that no perplexity holds it."""

    def score_tokens(self, batches: Iterable[Batch]) -> TokenScores:
        return TokenScores(nll=800.0, accuracy=0.0)


def test_a_perplexity_that_no_number_holds_counts_as_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="70"):  # as where a loss is not finite: said at the end, and recorded
        made_by(Overflowing, tmp_path, monkeypatch)
    [done] = [record.load(path) for path in (tmp_path / "results").rglob("*-seed1.json")]
    assert (done.status, done.score("dev", "ppl"), done.score("test", "bleu")) == ("diverged", None, None)
    assert "by hand seed 1 diverged: the perplexity of held-out text is not finite" in capsys.readouterr().out


class Starved(ByHeart):
    """Finds the card full."""

    def translate(self, *_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nby a stack of calls")


def test_memory_that_a_search_does_not_find_is_told_as_in_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="71"):
        made_by(Starved, tmp_path, monkeypatch)
    why = "(CUDA out of memory. Tried to allocate 2 GiB). Nothing was skipped. The same command goes on from the last"
    assert f"by hand seed 1: Out of memory while it was scored {why}" in capsys.readouterr().out
    made_by(ByHeart, tmp_path, monkeypatch)
    assert len([*(tmp_path / "results").rglob("*-seed1.json")]) == 1, "it went on"


def test_a_curve_has_what_is_a_number(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl", attempt=1, check=lambda: None) as journal:
        journal.append("train", 1, nll=2.0)
        journal.append("train", 2, nll=math.nan)  # as a GPU writes it, whose check comes a step late
    run: Any = SimpleNamespace(dir=SimpleNamespace(folder=tmp_path))
    assert Run._curve(run, "train") == {"step": [1], "nll": [2.0]}


def test_the_record_says_compiled_of_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    run: Any = SimpleNamespace(dir=SimpleNamespace(name="base seed 1"), progress=SimpleNamespace(say=said.append))
    whole = "malloc: kept, layers: compiled, batches: packed"
    for given_up, expected in ((None, whole), ("too many shapes", "malloc: kept, batches: packed")):
        monkeypatch.setattr("repro.model.compiled.given_up", lambda given_up=given_up: given_up)
        assert Run._as_it_was(run, whole) == expected
        assert Run._as_it_was(run, "malloc: kept") == "malloc: kept"
        assert len(said) == (given_up is not None)
