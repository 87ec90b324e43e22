"""A few seconds of a row's own training, where no run has finished that would tell."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from repro.model.config import LEARNED_POSITIONS
from repro.model.rivals.convs2s import ConvS2S
from repro.runs import measure as measuring
from repro.runs.measure import measure_run, seconds_of_an_update
from repro.runs.options import Options
from repro.runs.rates import row_of, tried
from repro.runs.run_dir import RunDir
from repro.runs.scales import SCALES
from repro.runs.session import Session
from repro.runs.silence import Silence
from repro.runs.table import Table, cells
from repro.runs.task import Translation
from repro.training import loop
from repro.training.trial import Trial

SMOKE = SCALES["smoke"]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Measurements of a moment, and this process as it was."""
    monkeypatch.setattr(measuring, "SECONDS", 0.01)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The run of the base at `smoke`, whose text is there."""
    options = Options(
        scale="smoke", cache_dir=tmp_path_factory.mktemp("cache"), runs_dir=tmp_path_factory.mktemp("runs")
    )
    asked = cells([], SMOKE.base, seeds=[1], chosen=["base"], task=Translation("en-de"))
    session = Session([Table(name="t", rows=[], title="T")], SMOKE, options, asked)
    session.open_texts([asked[0].task], lambda said: None)
    return session.run(asked[0])


def trial(run: RunDir, **changes: object) -> Trial:
    return replace(run.trial, spec=replace(run.spec, **changes))  # type: ignore[arg-type]


def test_a_row_is_tried_and_its_time_is_known_then(base: RunDir, tmp_path: Path) -> None:
    measure_run(base, tmp_path)
    [known] = tried(Options(cache_dir=tmp_path))
    assert (known.tokens, known.row) == (SMOKE.batch_tokens, row_of(vars(SMOKE.base), None))
    assert 0 < known.flops / known.train < 60


def test_one_thread_is_timed_by_its_processor(base: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))  # each look at the clock is a second
    clocks = SimpleNamespace(thread_time=lambda: next(ticks), monotonic=lambda: pytest.fail("the clock was asked"))
    monkeypatch.setattr(measuring, "time", clocks)
    assert seconds_of_an_update(trial(base)) == 1.0
    clocks.thread_time, clocks.monotonic = clocks.monotonic, clocks.thread_time
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)  # two on a busy machine wait for each other for long
    assert seconds_of_an_update(trial(base, threads=2)) == 1.0, "several wait for each other"


def test_what_is_trained_on_is_a_share_of_an_update(base: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring._tokens_at_once(trial(base)) == 512
    assert measuring._tokens_at_once(trial(base, devices=2)) == 256
    assert measuring._tokens_at_once(trial(base, accumulate=4)) == 128
    monkeypatch.setattr(measuring, "LONGEST_STEP", 1e-9)  # less where that takes long, but never than a sentence
    train = base.prepared.train
    assert measuring._tokens_at_once(trial(base)) == max(train.source.lengths.max(), train.target.lengths.max())


@pytest.mark.parametrize("system", [None, ConvS2S], ids=["base", "ConvS2S"])
def test_an_update_of_more_tokens_than_positions_is_tried(base: RunDir, system: type[ConvS2S] | None) -> None:
    hyper = replace(SMOKE.base, learned_positions=True)
    long = trial(base, batch_tokens=4 * LEARNED_POSITIONS, hyper=hyper, system=system)
    assert measuring._tokens_at_once(long) > LEARNED_POSITIONS


def test_what_is_trained_after_a_measurement_has_the_same_bits(base: RunDir, tmp_path: Path) -> None:
    def weights(folder: str) -> list[torch.Tensor]:
        part = trial(base, hyper=replace(SMOKE.base, steps=3))
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
    seconds_of_an_update(trial(base))
    after = weights("after")
    assert all(map(torch.equal, before, after))
