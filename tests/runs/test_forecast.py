"""What runs will take, by finished runs of this machine or by what is published of cards; how many it bears at once."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.model.config import BASE as BASE_HYPER
from repro.model.config import Hyper
from repro.results import record
from repro.runs import forecast as forecasts
from repro.runs.forecast import CARDS, Known, Machine, finished, flops_of, forecast, hours_of, row_of, this_machine
from repro.runs.options import Options, Seeds
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.table import Paper, Row, Table
from repro.storage import signed_json

PUBLISHED = Path(__file__).parents[2] / "results"
LAPTOP, PAPER, A100 = SCALES["laptop"], SCALES["paper"], CARDS["a100"]


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(**options: Any) -> list[RunDir]:
    return planned([TABLE], LAPTOP, Options(**options))


BASE, H32 = asked()


def changed(run: RunDir, **hyper: Any) -> RunDir:
    return replace(run, spec=replace(run.spec, hyper=replace(run.spec.hyper, **hyper)))


def known(run: RunDir, seconds: float) -> Known:
    """A run that took so long."""
    flops = flops_of(run)
    return Known(row_of(vars(run.spec.hyper), None), flops, flops / seconds)


def expected(run: RunDir, *runs: Known) -> tuple[float, bool]:
    """The seconds of a run, where these are known, the newest first; and whether that rests on any of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecasts, "finished", lambda options: [*runs])
        [seconds], measured = forecasts.estimates([run], Options())
    return seconds, measured


# ---- this machine, by runs that finished here


def test_a_run_takes_as_long_as_the_newest_of_its_row_whatever_the_schedule() -> None:
    runs = known(BASE, 60.0), known(H32, 120.0), known(BASE, 30.0)
    assert expected(BASE, *runs) == (pytest.approx(60.0), True)
    assert expected(H32, *runs) == (pytest.approx(120.0), True)
    assert expected(changed(BASE, steps=900, warmup=7), *runs)[0] == pytest.approx(30.0)
    trial = changed(BASE, steps=BASE.spec.hyper.steps // 10)  # half of its 12 seconds is scoring
    assert expected(BASE, known(trial, 12.0), *runs)[0] == pytest.approx(60.0), "by the run that was as long"


def test_a_row_that_never_ran_takes_its_operations_at_the_rate_of_the_most_alike() -> None:
    fewer = flops_of(H32) / flops_of(BASE)
    wide = changed(BASE, d_ff=4 * LAPTOP.base.d_ff)
    assert expected(H32, known(wide, 500.0), known(BASE, 80.0)) == (pytest.approx(80.0 * fewer), True)


def test_without_known_runs_times_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    guess = flops_of(BASE) / forecasts.FLOPS_PER_CORE
    assert expected(BASE) == (pytest.approx(guess), False)
    several = replace(BASE, spec=replace(BASE.spec, threads=2, devices=3))
    assert expected(several)[0] == pytest.approx(guess / 6)
    for device, name in (("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA RTX 4090", "a100")):  # a card, by its name
        monkeypatch.setattr(forecasts, "this_machine", lambda device=device: Machine("Z80", device, "2.13.0"))
        assert expected(BASE) == (3600 * hours_of(BASE, CARDS[name]), False)


HERE = this_machine()
RECORD: dict[str, Any] = {  # of a run of the base at `laptop` here; what nobody asks for is left out
    "format": 2,
    "hyper": asdict(LAPTOP.base),
    "settings": {"devices": 1, "precision": "fp32"},
    "cost": {"steps": 1800, "train_seconds": 90.0, "decode_seconds": 10.0, "flops": 3.6e12},
    "stamp": {"cpu": HERE.cpu, "device": HERE.device, "n_threads": 1, "versions": {"torch": HERE.torch}},
    "status": "finished",
}
Keep = Callable[..., list[Known]]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Keeps a run's record, with other values in some of its parts; what is known then."""

    def one_more(number: int = 1, **changes: Any) -> list[Known]:
        parts = {name: RECORD[name] | of if isinstance(of, dict) else of for name, of in changes.items()}
        signed_json.write(tmp_path / f"{number:016}" / "record.json", RECORD | parts)
        return finished(Options(runs_dir=tmp_path))

    return one_more


def test_a_finished_run_says_how_fast_its_row_is(keep: Keep) -> None:
    row = row_of(asdict(LAPTOP.base), None)
    assert keep(hyper={"steps": 900, "warmup": 7}) == [Known(row, 3.6e12, 3.6e10)]  # in 90 s and 10 s
    assert [one.rate for one in keep(2, cost={"train_seconds": 30.0})] == [9e10, 3.6e10], "the newest first"
    assert keep(system="toy.Toy")[0].row != row


def test_runs_of_other_machines_short_runs_and_damaged_files_are_ignored(keep: Keep, tmp_path: Path) -> None:
    for name, change in (
        *(("stamp", of) for of in ({"cpu": "Z80"}, {"device": "H100"}, {"versions": {"torch": "2"}}, {"n_threads": 2})),
        *(("settings", of) for of in ({"devices": 2}, {"precision": "bf16"})),
        *(("cost", of) for of in ({"decode_seconds": -90.0}, {"train_seconds": 9.0})),  # mostly start-up
    ):
        assert keep(**{name: change}) == []
    assert keep(status="diverged") == []
    for damage in ("", "[]", '{"format": 3, "sha256": "0"}'):
        (tmp_path / f"{1:016}" / "record.json").write_text(damage)
        assert len(keep(2)) == 1


def test_a_gpu_is_found_without_asking_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.machine.present", lambda: ("NVIDIA H100 80GB HBM3",))
    for hidden, device in ((None, "NVIDIA H100 80GB HBM3"), ("", HERE.cpu)):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert this_machine.__wrapped__().device == device


# ---- cards that are not here, against what their sources say


def of_paper(devices: int) -> list[RunDir]:
    big = Row("big", lambda base: replace(forecasts.BIG, steps=3 * base.steps), Paper())
    return planned([replace(TABLE, rows=[big])], PAPER, Options(scale="paper", devices=devices))


def test_the_papers_own_machine_takes_as_long_as_the_paper_says() -> None:
    # section 5.2: "100,000 steps or 12 hours", and "300,000 steps (3.5 days)", on 8 P100
    base, big = (hours_of(run, CARDS["p100"]) for run in of_paper(8))
    assert base == pytest.approx(12, rel=0.1)
    assert big == pytest.approx(3.5 * 24, rel=0.05)


def test_published_rates_and_what_several_cards_keep_of_them() -> None:
    of = {name: [card.rate(hyper) for hyper in (BASE_HYPER, forecasts.BIG)] for name, card in CARDS.items()}
    assert of["a100"][1] == pytest.approx(82_059 * forecasts.pair_flops(forecasts.BIG, 33_708), rel=1e-5)
    assert of["a100"][0] / of["a100"][1] == pytest.approx(of["p100"][0] / of["p100"][1], rel=1e-5)
    assert of["h100"] == of["h200"] == pytest.approx([63_147 / 32_434 * rate for rate in of["a100"]], rel=1e-5)
    assert [A100.efficiency(n) for n in (1, 2, 4, 5, 8, 64)] == [1, 0.8725, 0.8725, 0.84, 0.84, 0.84]
    one, eight = (hours_of(of_paper(n)[0], A100) for n in (1, 8))
    assert one / eight == pytest.approx(8 * 0.84)


def test_hours_and_money_are_of_the_card_and_no_line_is_of_this_machine() -> None:
    def lines(**options: Any) -> list[str]:
        chosen = Options(scale="paper", dry_run=True, **options)
        return forecast("t", of_paper(chosen.processes), PAPER, chosen).split("\n")

    hours = sum(hours_of(run, A100) for run in of_paper(8))
    found = lines(hardware="a100", devices=8, price=2.0)
    [whole] = [line for line in found if line.startswith("Times are those of training on 8 a100, by published rates, ")]
    assert whole.endswith(f"{hours:,.1f} hours, {8 * hours:,.1f} device-hours, {16 * hours:,.2f} in money.")
    assert not [line for line in found if "Memory" in line or "free" in line or "at a time" in line]
    assert "Of 8 each keeps 84% of its speed." in "".join(found)
    assert "money" not in "".join(lines(hardware="h100"))
    assert "this PyTorch has no kernels for it" in "".join(lines(hardware="p100"))
    kept = forecasts.sweep_bytes(of_paper(8))
    assert f"Disk: checkpoints at most {forecasts.size(kept)}; wmt14 en-de " in found[-1]


CPU, GPU = Machine("Z80", "Z80", "2.13.0"), Machine("Z80", "NVIDIA H200", "2.13.0")


def test_the_machine_that_makes_the_runs_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, options, card in (
        (CPU, Options(dry_run=True), None),
        (CPU, Options(scale="single_gpu", dry_run=True), A100),  # not 344.6 d of this machine
        (CPU, Options(scale="paper"), None),  # who begins it here is told how long it takes here
        (CPU, Options(scale="paper", on="ray"), A100),
        (GPU, Options(scale="single_gpu", dry_run=True), None),
    ):
        monkeypatch.setattr(forecasts, "this_machine", lambda machine=machine: machine)
        assert forecasts.card_for(options) == card


# ---- what is said


def test_each_row_is_there_once_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds of both rows, where a run of the base is known to take 180 s and one of h=32 360 s."""
    monkeypatch.setattr(forecasts, "finished", lambda options: [known(BASE, 180.0), known(H32, 360.0)])
    monkeypatch.setattr(forecasts, "parallelism", lambda runs, options: (options.jobs or 1, "2 processors"))

    def said(**more: Any) -> str:
        options = Options(runs_dir=tmp_path, seeds=Seeds.span(1, 2), dry_run=True, **more)
        return forecast("t", asked(seeds=options.seeds), LAPTOP, options)

    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert flops_of(BASE) == flops
    lines = said().split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar, 2 seeds: 1 to 2; shows the sign of large effects."
    assert [line.split() for line in lines[2:4]] == [
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12", "3.0", "min"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12", "6.0", "min"],
    ]
    assert lines[4] == "In all about 18.0 min, one run after the other."
    assert "at a time" not in "".join(lines)
    # 180 s of the base and 360 s of h=32, twice: longest first, 540 s each
    assert "With 2 runs at a time (2 processors) about 9.0 min, if nothing else" in said(jobs=2)


def test_times_and_sizes_are_said_as_a_person_says_them() -> None:
    assert [forecasts.duration(seconds) for seconds in (0.4, 119, 120, 7_199, 7_200, 172_799, 259_200)] == [
        "0 s", "119 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "3.0 d",
    ]  # fmt: skip
    assert [forecasts.size(n) for n in (64_000, 1e6, 1e9, 1.57e10)] == ["64 kB", "1.0 MB", "1.0 GB", "15.7 GB"]


# ---- how many runs at a time

GB = 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Eight processors, no cards, and memory for a hundred runs; what a test changes of it."""
    of = SimpleNamespace(cards=0, free=100 * GB)
    monkeypatch.setattr(forecasts, "processors", lambda: 8)
    monkeypatch.setattr(forecasts, "visible", lambda: {str(i): "A card" for i in range(of.cards)})
    monkeypatch.setattr(forecasts, "memory_of", lambda *_: GB)
    monkeypatch.setattr(forecasts, "free_memory", lambda: of.free)
    return of


def shape(seed: int = 1, n_heads: int = 8) -> Any:
    """As much of a run as is asked for."""
    return SimpleNamespace(spec=SimpleNamespace(seed=seed, hyper=SimpleNamespace(n_heads=n_heads)))


def borne(n_runs: int, **options: Any) -> tuple[int, str]:
    return forecasts.parallelism([shape()] * n_runs, Options(**options))


def test_as_many_as_processors_and_memory_bear(machine: SimpleNamespace) -> None:
    for n_runs, threads, free, expected in (
        (9, 1, 100 * GB, 8),
        (3, 1, 100 * GB, 3),  # no more than there are
        (9, 1, 5 * GB, 4),  # a tenth is left alone
        (9, 1, GB // 2, 1),  # one is tried anyhow
        (9, 3, 100 * GB, 2),
    ):
        machine.free = free
        n, why = borne(n_runs, threads=threads)
        assert n == expected
        assert why.startswith(f"8 processors, {threads} a run; ")
        assert " of memory free, about 1.0 GB a run" in why


def test_each_card_takes_one_run_and_more_than_memory_bears_is_refused(machine: SimpleNamespace) -> None:
    machine.cards = 2
    assert borne(9)[0] == 2
    assert borne(9)[1].startswith("2 GPUs; ")
    assert borne(9, jobs=6) == (6, "--jobs")
    machine.free = 3 * GB
    assert borne(9, jobs=3) == (3, "--jobs")
    assert borne(2, jobs=50) == (2, "--jobs")
    with pytest.raises(ValueError, match=r"--jobs 4: 4 runs at a time need about 4.0 GB .* 3.0 GB is free"):
        borne(9, jobs=4)
    # runs of several processes are made one at a time
    assert borne(9, devices=2) == (1, "2 processes share each")
    assert borne(9, devices=2, jobs=1)[0] == 1
    with pytest.raises(ValueError, match="--jobs 3: runs of 2 processes go one at a time"):
        borne(9, devices=2, jobs=3)


def test_runs_go_to_whoever_is_free_first() -> None:
    assert forecasts.makespan([3, 2, 2, 5], 1) == 12
    assert forecasts.makespan([3, 2, 2, 5], 2) == 8  # 3 5 and 2 2
    assert forecasts.makespan([3, 2], 7) == 3
    assert forecasts.makespan([], 2) == 0


def test_of_each_seed_the_longest_come_first() -> None:
    runs = [shape(seed) for seed in (7, 7, 7, 3, 3, 3)]
    seconds = [1, 1, 2, 4, 5, 4]
    assert forecasts.ordered(runs, seconds, 2) == [2, 0, 1, 4, 3, 5]
    assert forecasts.ordered(runs, seconds, 1) == [*range(6)]  # one after the other is as long in any order
    assert forecasts.ordered([], [], 2) == []
    assert forecasts.ordered([shape(n_heads=1), shape(n_heads=32)], [2, 2], 2) == [1, 0]


# ---- memory and disk, against published runs


@pytest.mark.parametrize(
    "name",
    [
        "captions-6000-steps-bf16/base/base-seed4",
        "captions-bf16/table3_C/n=8--*-seed4",
        "captions-bf16/lab_parts/pre-norm-seed4",
        "laptop-5000-pairs/base/base-seed8",
    ],
)
def test_published_runs_of_processors_with_wide_vectors_took_about_what_is_forecast(name: str) -> None:
    run = record.load(next(PUBLISHED.glob(f"{name}.json"), PUBLISHED / f"{name}.json"))  # a file, or a line of one
    peak = run.cost["peak_memory_bytes"]
    assert peak
    [base] = planned([], SCALES[run.scale.split("-")[0]], Options(pair=run.pair))
    of_run = replace(base, spec=replace(base.spec, hyper=Hyper(**run.hyper)))
    assert forecasts.memory_of(of_run) == pytest.approx(peak, rel=0.3)


def test_text_ids_and_archives_take_room_and_what_two_pairs_share_takes_it_once() -> None:
    text = "11.6 MB of text, less of ids"
    pairs = [planned([], SCALES["captions"], Options(pair=pair))[0] for pair in ("en-de", "en-fr")]
    assert forecasts.disk_needed(pairs).partition("; ")[2] == (
        f"multi30k en-de {text}; multi30k en-fr {text}; archives at most 256.0 MB"
    )
    assert forecasts.disk_needed([BASE]).count(";") == 0, "generated text is neither fetched nor kept"
