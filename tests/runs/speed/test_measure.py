"""A few seconds of a row's own work, on text that may not be there."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from repro.model.config import LEARNED_POSITIONS
from repro.model.rivals.convs2s import ConvS2S
from repro.model.special_tokens import EOS, SPECIAL
from repro.results.search import Search
from repro.runs.forecast import forecast
from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.runs.silence import Silence
from repro.runs.speed import measure as measuring
from repro.runs.speed.busy import BusyWatch
from repro.runs.speed.measure import made_up, measure, measure_rows
from repro.runs.speed.rates import key_of_cell, read_rates
from repro.runs.table import Cell, cells
from repro.runs.task import Translation
from repro.runs.trial import Trial
from repro.training import loop

SMOKE, LAPTOP = SCALES["smoke"], SCALES["laptop"]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Measurements of a moment, and this process as it was."""
    monkeypatch.setattr(measuring, "TRAINING", 0.01)
    monkeypatch.setattr(measuring, "SEARCHING", 0.01)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def base() -> Cell:
    [one] = cells([], SMOKE.base, seeds=[1], chosen=["base"], task=Translation("en-de"))
    return one


def trial(**changes: object) -> Trial:
    made = measuring._trial(base(), SMOKE, Options(), made_up(SMOKE, "en-de"))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_text_that_is_made_up_looks_like_text() -> None:
    text = made_up(LAPTOP, "en-de")
    assert (len(text.dev.source), len(text.test.target)) == (1000, 1000)
    for side in (text.train.source, text.train.target):
        lengths = np.asarray(side.lengths)
        assert lengths.mean() == pytest.approx(LAPTOP.sentence_tokens, rel=0.1)
        assert lengths.max() <= LAPTOP.max_length
        assert all(side.sentence(i)[-1] == EOS for i in range(10))
        ids = np.concatenate([side.sentence(i)[:-1] for i in range(len(side))])
        assert ids.min() >= len(SPECIAL)
        assert 100 < np.unique(ids).size <= 3_000 > ids.max()
    assert text.tokenizer.size == 3_000
    assert made_up(LAPTOP, "en-de").train.source.ids.tolist() == text.train.source.ids.tolist()


def test_a_row_is_measured_and_its_time_is_known_then(tmp_path: Path) -> None:
    options, told = Options(scale="smoke", cache_dir=tmp_path, runs_dir=tmp_path / "runs"), []
    assert "1 of 1 rows are unmeasured" in forecast("t", [base()], SMOKE, options)
    measure_rows([base(), replace(base(), seed=2)], SMOKE, options, told.append)
    assert read_rates(tmp_path).keys() == {key_of_cell(base(), SMOKE, options)}
    first, second = told  # a row once, whatever its seeds
    assert first == "The text of grammar en-de is not prepared: measured on random ids of its size."
    assert second.startswith("base: ")
    assert "unmeasured" not in forecast("t", [base()], SMOKE, options)


def test_one_thread_is_timed_by_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))
    # each look at the clock is a second: a step takes one, a search of any length another
    clocks = SimpleNamespace(thread_time=lambda: next(ticks), monotonic=lambda: pytest.fail("the clock was asked"))
    monkeypatch.setattr(measuring, "time", clocks)
    monkeypatch.setattr(measuring, "AT_LEAST", 9)
    said: list[str] = []
    now, worked = iter(range(0, 10**6, 2)), iter(range(10**6))
    watch = BusyWatch(said.append, clock=lambda: next(now), processor=lambda: next(worked), load=lambda: None)
    found = measure(trial(), watch)
    assert (found.step, found.origin) == (1.0, "measured")
    assert measuring._clock(trial(threads=2)) is measuring._waited  # several wait for each other
    # and a machine that others use is told of here as well
    assert len(said) == 1
    assert "had 50% of a processor" in said[0]


def test_what_is_trained_on_is_a_share_of_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring._tokens_at_once(trial()) == 512
    assert measuring._tokens_at_once(trial(devices=2)) == 256
    assert measuring._tokens_at_once(trial(accumulate=4)) == 128
    monkeypatch.setattr(measuring, "LONGEST_STEP", 1e-9)  # less where that takes long, but never than a sentence
    train = trial().prepared.train
    assert measuring._tokens_at_once(trial()) == max(train.source.lengths.max(), train.target.lengths.max())


@pytest.mark.parametrize("system", [None, ConvS2S], ids=["base", "ConvS2S"])
def test_an_update_of_more_tokens_than_positions_is_tried(system: type[ConvS2S] | None) -> None:
    hyper = replace(SMOKE.base, learned_positions=True)
    assert (
        measuring._tokens_at_once(trial(batch_tokens=4 * LEARNED_POSITIONS, hyper=hyper, system=system))
        > LEARNED_POSITIONS
    )


def test_a_model_that_learned_nothing_is_searched_as_far_as_one_that_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    part = trial()
    module = part.module()
    real = type(part).opened

    def opened(self: Trial, model: object) -> object:
        inner = real(self, model)  # type: ignore[arg-type]

        class Looked:
            def __enter__(self) -> object:
                backend = inner.__enter__()

                def translate(side: object, search: Search) -> object:
                    found = backend.translate(side, search)
                    lengths = side.lengths.tolist()  # type: ignore[attr-defined]
                    seen.extend((len(ids), n + search.extra) for ids, n in zip(found, lengths, strict=True))
                    return found

                return SimpleNamespace(translate=translate)

            def __exit__(self, *error: object) -> None:
                inner.__exit__(*error)

        return Looked()

    monkeypatch.setattr(type(part), "opened", opened)
    measuring._sentence(part, module, 20.0, 20.0)
    assert len(seen) >= 32
    assert all(found == limit for found, limit in seen)
    assert {limit - found for found, limit in seen} == {0}


def test_what_is_trained_after_a_measurement_has_the_same_bits(tmp_path: Path) -> None:
    def weights(folder: str) -> list[torch.Tensor]:
        part = trial(hyper=replace(SMOKE.base, steps=3))
        part.tune()
        module = part.module()
        every = loop.Every(log=1, validate=100, checkpoint=100)
        part.train(
            module,
            folder=tmp_path / folder,
            run="0" * 16,
            log=Silence(),
            every=every,
            watch=lambda kind, step, numbers: None,
            should_stop=lambda: False,
        )
        return [one.detach().clone() for one in module.parameters()]

    before = weights("before")
    measure(trial())
    after = weights("after")
    assert all(map(torch.equal, before, after))
