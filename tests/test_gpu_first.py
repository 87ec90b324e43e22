"""The script of the first ten minutes on a card: it ends, goes on after errors, and forgets no answer."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmark_files import ROOT

from repro.runs.table import Row

HIDDEN = ("mlflow", "hypothesis", "pandas", "sacremoses")  # torchmetrics would miss the others where it has found them


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in ("benchmarks", "experiments"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import gpu_first

    return gpu_first


SCRIPT = ROOT / "benchmarks/gpu_first.py"


def rehearsed(folder: Path, *asked: str, hidden: tuple[str, ...] = ()) -> Any:
    """The record of a rehearsal that went well, made without some packages."""
    words = ["--rehearse", "--json", str(folder / "first.json"), "--ask", *asked]
    start = [str(SCRIPT), *words]
    if hidden:
        hide = f"import sys, runpy; sys.modules.update(dict.fromkeys({hidden})); sys.argv = {start}; "
        find = f"sys.path.insert(0, {str(SCRIPT.parent)!r}); "
        start = ["-c", f"{hide}{find}runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, *start], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "first.json").read_bytes())


@pytest.mark.slow
def test_it_runs_where_little_is_installed(tmp_path: Path) -> None:
    rehearsed(tmp_path, "kernel", "loop", hidden=HIDDEN)
    record = rehearsed(tmp_path, "changes", hidden=HIDDEN)
    [(key, one)] = record.items()
    assert f"torch {torch.__version__}" in key
    assert one["answers"].keys() == {"kernel", "loop", "changes"}  # the second call has erased nothing
    assert max(answer["gradients"] for answer in one["answers"]["kernel"].values()) < 0.02
    assert one["answers"]["loop"].keys() == {"base", "h=16"}


@pytest.mark.faults
def test_the_whole_rehearsal_ends_well(tmp_path: Path, first: Any) -> None:
    [one] = rehearsed(tmp_path, *first.QUESTIONS).values()
    assert one["answers"].keys() == first.QUESTIONS.keys()


def asked(first: Any, seconds: float) -> Any:
    return first.Asked(sizes=first.TINY, device=torch.device("cpu"), ends=time.monotonic() + seconds)


def test_a_row_that_fails_ends_no_other(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def one_row(of: Any, row: Row, base: Any, bf16: bool) -> None:
        tried.append((row.name, bf16))
        if row.name == "h=1":
            raise RuntimeError("FlashAttention forward only supports head dimension at most 256")

    monkeypatch.setattr(first, "_one_row", one_row)
    monkeypatch.setattr(first, "TABLES", ("table3_A",))
    found = first.every_row(asked(first, 60))
    assert tried == [(name, bf16) for bf16 in (True, False) for name in ("h=1", "h=4", "h=16", "h=32")]
    assert found["done"] == {"bf16": 3, "fp32": 3}
    assert found["failed"].keys() == {"table3_A, h=1, bf16", "table3_A, h=1, fp32"}


def test_it_ends_in_time_and_names_what_it_did_not_reach(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(of: Any) -> None:
        time.sleep(60)

    questions = {"versions": lambda of: {"torch": "2"}, "kernel": hangs, "loop": hangs}
    monkeypatch.setattr(first, "QUESTIONS", questions)
    kept: dict[str, Any] = {}
    begun = time.monotonic()
    failed = first.ask_all(asked(first, 0.5), list(questions), kept.__setitem__)
    assert time.monotonic() - begun < 5
    assert failed == ["kernel", "loop"]
    assert kept["versions"] == {"torch": "2"}
    assert kept["kernel"]["failed"].startswith("TimeoutError")
    assert "loop" not in kept


def test_records_of_other_cards_and_answers_stay(first: Any, tmp_path: Path) -> None:
    path = tmp_path / "first.json"
    first.merge(path, "A, torch 2, c1", {"loop": 1, "rows": 2}, {"commit": "c1"})
    first.merge(path, "B, torch 2, c1", {"loop": 3}, {"commit": "c1"})
    first.merge(path, "A, torch 2, c1", {"loop": 4}, {"commit": "c1"})
    record = json.loads(path.read_bytes())
    assert {key: one["answers"] for key, one in record.items()} == {
        "A, torch 2, c1": {"loop": 4, "rows": 2},
        "B, torch 2, c1": {"loop": 3},
    }
