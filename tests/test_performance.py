"""docs/performance.md says what the records of the benchmarks say, and nothing else."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def performance() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("performance", BENCHMARKS / "performance.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_the_page_is_what_the_records_make(performance: ModuleType) -> None:
    assert performance.PAGE.read_bytes().decode() == performance.page(performance.load())


def test_a_number_that_changes_changes_the_page(performance: ModuleType) -> None:
    records = performance.load()
    before = performance.page(records)
    for name, record in records.items():
        if name.startswith("train-"):
            record["sides"]["ours"]["of_best_peer"] += 1
    assert performance.page(records) != before
