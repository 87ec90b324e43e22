"""What a run takes, against published runs; what is free, by what the system says."""

from dataclasses import replace
from pathlib import Path

import pytest

from repro.model.config import Hyper
from repro.results import record
from repro.runs.forecast import run_memory
from repro.runs.scales import SCALES
from repro.runs.speed.memory import KEPT_SHAPES, KEPT_WIDE, free_memory

PUBLISHED = Path(__file__).parents[3] / "results"

MEMINFO = "MemTotal:       24689036 kB\nMemFree:         1000 kB\nMemAvailable:   2000 kB\n"


@pytest.fixture
def meminfo(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text(MEMINFO)
    return tmp_path / "meminfo"


def test_what_the_machine_has(tmp_path: Path, meminfo: Path) -> None:
    assert free_memory(meminfo, tmp_path) == 2_048_000
    assert free_memory(tmp_path / "nowhere", tmp_path) is None
    meminfo.write_text("MemAvailable: much\n")
    assert free_memory(meminfo, tmp_path) is None


def test_what_the_control_group_leaves(tmp_path: Path, meminfo: Path) -> None:
    for name, text in {
        "memory.max": "1500000\n",
        "memory.current": "600000\n",
        "memory.stat": "anon 5\ninactive_file 100000\nactive_file 7\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert free_memory(meminfo, tmp_path) == 1_000_000
    (tmp_path / "memory.current").write_text("1900000\n")  # it is above its limit
    assert free_memory(meminfo, tmp_path) == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(meminfo, tmp_path) == 2_048_000


def test_a_control_group_of_version_1(tmp_path: Path, meminfo: Path) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in {
        "memory.limit_in_bytes": "900000\n",
        "memory.usage_in_bytes": "600000\n",
        "memory.stat": "total_inactive_file 50000\n",
    }.items():
        (tmp_path / "memory" / name).write_text(text)
    assert free_memory(meminfo, tmp_path) == 350_000


@pytest.mark.parametrize(
    "name",
    [
        "laptop-20000-pairs/base/base-seed1",
        "laptop-20000-pairs/base/base-seed3",
        "laptop-20000-pairs/table3_A/h=1-seed1",
        "laptop-20000-pairs/table3_A/h=32-seed1",
        "laptop-20000-pairs/table3_C/n=2--*-seed1",
        "laptop-20000-pairs/table3_C/n=8--*-seed1",
        "laptop-20000-pairs/table3_C/d_model=256-seed3",
        "captions-6000-steps-bf16/base/base-seed4",
        "captions-bf16/table3_C/n=8--*-seed4",
        "captions-bf16/lab_parts/pre-norm-seed4",
        "captions-bf16/lab_parts/pre-norm-seed6",
        "laptop-5000-pairs/base/base-seed8",
        "laptop-5000-pairs/base/base-seed7",
        "laptop-5000-pairs/table3_A/h=16-seed4",
    ],
)
def test_published_runs_took_about_what_is_forecast(name: str) -> None:
    [file] = PUBLISHED.glob(f"{name}.json")
    run = record.load(file)
    peak = run.cost["peak_memory_bytes"]
    assert peak
    vectors = run.stamp.get("cpu_flags", [])  # the older processor had no wide ones
    forecast = run_memory(Hyper(**run.hyper), SCALES[run.scale.split("-")[0]], run.pair, vectors=vectors)
    assert forecast == pytest.approx(peak, rel=0.25)


def test_large_products_keep_what_they_made() -> None:
    laptop = SCALES["laptop"]
    wide = replace(laptop.base, d_model=128, d_k=16, d_v=16)
    narrow = run_memory(laptop.base, laptop, "en-de", vectors=())
    assert run_memory(wide, laptop, "en-de") > narrow + KEPT_SHAPES
    assert run_memory(laptop.base, laptop, "en-de", vectors=("avx2", "avx512f")) == narrow + KEPT_WIDE
