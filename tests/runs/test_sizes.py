"""What a run takes, against published runs; what is free, by what the system says."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from repro.model.config import Hyper
from repro.results import record
from repro.runs import sizes
from repro.runs.forecast import disk_needed
from repro.runs.options import Options
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.sizes import free_memory, granted, run_memory, size

PUBLISHED = Path(__file__).parents[2] / "results"


def test_what_the_machine_has_and_what_its_control_group_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes.psutil, "virtual_memory", lambda: SimpleNamespace(available=2_000_000))
    assert free_memory(tmp_path) == 2_000_000
    for name, text in {
        "memory.max": "1500000\n",
        "memory.current": "600000\n",
        "memory.stat": "anon 5\ninactive_file 100000\nactive_file 7\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert free_memory(tmp_path) == 1_000_000
    (tmp_path / "memory.current").write_text("1900000\n")  # it is above its limit
    assert free_memory(tmp_path) == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) == 2_000_000


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
    forecast = run_memory(Hyper(**run.hyper), SCALES[run.scale.split("-")[0]], run.pair)
    assert forecast == pytest.approx(peak, rel=0.3)


def asked(scale: str, pair: str = "en-de") -> list[RunDir]:
    return planned([], SCALES[scale], Options(pair=pair))


def test_text_ids_and_archives_take_room_and_what_two_pairs_share_takes_it_once() -> None:
    text = "11.6 MB of text, less of ids"
    assert disk_needed([*asked("captions"), *asked("captions", pair="en-fr")]).partition("; ")[2] == (
        f"multi30k en-de {text}; multi30k en-fr {text}; archives at most 256.0 MB"
    )
    assert disk_needed(asked("laptop")).count(";") == 0, "generated text is neither fetched nor kept"


def test_sizes_are_said_as_a_person_says_them() -> None:
    assert [size(n) for n in (64_000, 1e6, 2.56e8, 1e9, 1.57e10)] == [
        "64 kB", "1.0 MB", "256.0 MB", "1.0 GB", "15.7 GB",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"cpu.max": b"max 100000\n"}, None),
        ({"cpu.max": b"150000 100000\n"}, 2),
        ({"cpu.max": b"50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": b"-1\n", "cpu/cpu.cfs_period_us": b"100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": b"400000\n", "cpu/cpu.cfs_period_us": b"100000\n"}, 4),
        ({}, None),
    ],
)
def test_what_a_container_grants(tmp_path: Path, files: dict[str, bytes], wanted: int | None) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert granted(tmp_path) == wanted
