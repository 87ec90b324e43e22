"""docs/performance.md says what the records of the benchmarks say, and nothing else."""

from types import ModuleType

import pytest
from benchmark_files import opened


@pytest.fixture(scope="module")
def performance() -> ModuleType:
    return opened("performance")


def test_the_page_is_what_the_records_make(performance: ModuleType) -> None:
    assert performance.PAGE.read_bytes().decode() == performance.page(performance.load())


def test_a_gpu_has_its_part_of_the_page(performance: ModuleType) -> None:
    step = {"milliseconds": 27.54, "pair_tokens_per_second": 912_345.6, "mfu": 0.4567}
    record = {
        "stamp": next(iter(performance.load().values()))["stamp"],
        "limits": {"tflops": 789.6, "copy_tb_per_second": 4.21},
        "correct": {"all": {"loss": 1e-5, "gradient": 0.0345}},
        "steps": [
            {"size": "base", "ways": "all", "peak_gib": 9.87, **step},
            {"size": "big", "ways": "without fused_loss", "out_of_memory": True},
        ],
        "parts": {"base": {"attention": 1.25, "gaps": 0.5}},
    }
    page = " ".join(performance.page(performance.load() | {"gpu": record}).split())
    for told in (
        "790 TFLOP/s of bfloat16 products, 4.2 TB/s of copying",
        "| base, all | 27.5 | 912,346 | 45.7% | 9.9 | 3.5e-02 |",
        "| big, without fused_loss | out of memory |",
        "step of base goes, in ms: attention 1.2, gaps 0.5.",
    ):
        assert told in page, told


def test_the_picture_says_processor_size_spread_and_whose_model(performance: ModuleType) -> None:
    records = performance.load()
    panels = [panel for name, record in records.items() for panel in performance.panels_of(name, record)]
    titles = [title for title, _ in panels]
    assert any("small (N 2, d_model 128, d_ff 512, h 4)" in title for title in titles)
    names = {bar.name for _, bars in panels for bar in bars}
    assert {"Hugging Face MarianMT", "torch.nn.Transformer", "fairseq", "ours"} <= names
    assert "marian" not in names
    assert all(bar.low <= bar.speed <= bar.high for _, bars in panels for bar in bars)
    assert any(bar.low < bar.speed < bar.high for _, bars in panels for bar in bars)
    assert records["train-1-small-fp32"]["stamp"]["device"] in performance.note(records)
    assert performance.picture(records).startswith(b"\x89PNG")


def test_a_wait_is_the_median_of_published_runs(performance: ModuleType) -> None:
    lines = [line for line in performance.waits() if line.startswith("| `laptop`")]
    assert lines, "no published base run at laptop"
    assert sum(int(line.split(" | ")[2]) for line in lines) == len(
        list((performance.RUNS / "laptop/base").glob("*.json"))
    )
    assert performance.median([3.0, 1.0, 8.0], ".1f") == "3.0 (1.0 to 8.0)"
