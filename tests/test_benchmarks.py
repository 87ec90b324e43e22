"""Programs of benchmarks/: their pages say what the records say; they end, go on after errors and forget nothing."""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from benchmark_files import ROOT, opened

from repro.runs.table import Row


@pytest.fixture(scope="module")
def program() -> Callable[[str], Any]:
    """The program of a name, read once."""
    return functools.cache(opened)


def test_the_page_is_what_the_records_make(program: Any) -> None:
    performance = program("performance")
    assert performance.PAGE.read_bytes().decode() == performance.page(performance.load())


def test_a_gpu_has_its_part_of_the_page(program: Any) -> None:
    performance = program("performance")
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


def test_a_batch_is_moved_as_in_a_run(program: Any) -> None:
    gpu = program("gpu")
    batch = gpu.moved(next(gpu.batches(*gpu.text(9, 50), 200, packed=True)), torch.device("meta"))
    assert batch.decoder_in.ends is batch.target.ends, "it is sent once"


def test_the_picture_says_processor_size_spread_and_whose_model(program: Any) -> None:
    performance = program("performance")
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


# engines.py: what the log says of its record


def test_the_log_says_what_the_record_says() -> None:
    lines = json.loads((ROOT / "benchmarks/records/engines.json").read_bytes())["lines"]
    equal = {
        (line["beam"], line["alpha"], line["engine"]): line["equal"]
        for line in ({**one, **one["search"]} for one in lines)
    }
    names = "ctranslate2", "huggingface"
    told = [f"{equal[4, alpha, names[0]]} and {equal[4, alpha, names[1]]}" for alpha in (0.0, 0.6)]
    text = " ".join((ROOT / "docs/log.md").read_bytes().decode().split())
    assert f"with a beam of 4 {told[0]} without a length penalty, {told[1]} with the paper's" in text
    assert {n for (beam, _, engine), n in equal.items() if beam == 1 or engine == "safetensors"} == {200}
    assert all(equal[4, a, "huggingface"] == equal[4, a, "huggingface, our epsilon"] for a in (0.0, 0.6))
    assert not any(line["likelier"]["theirs"] for line in lines)


# parsing.py


def test_the_page_of_parsing_is_what_the_records_make(program: Any) -> None:
    parsing = program("parsing")
    text = parsing.PAGE.read_bytes().decode()
    assert parsing.rendered(text, parsing.load()) == text, "run python benchmarks/parsing.py"
    with pytest.raises(ValueError, match="expected one mark"):
        parsing.rendered(text.replace("parsing.py: search", "parsing.py"), parsing.load())


# gpu_first.py: the first ten minutes on a card


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
    start = [str(SCRIPT), "--rehearse", "--json", str(folder / "first.json"), "--ask", *asked]
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
    assert one["answers"]["loop"].keys() == {"base", "big"}


@pytest.mark.faults
def test_the_whole_rehearsal_ends_well(tmp_path: Path, first: Any) -> None:
    [one] = rehearsed(tmp_path, *first.QUESTIONS).values()
    assert one["answers"].keys() == first.QUESTIONS.keys()


def asked(first: Any, seconds: float) -> Any:
    return first.Asked(sizes=first.TINY, device=torch.device("cpu"), ends=time.monotonic() + seconds)


def test_a_row_that_fails_ends_no_other(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def one_row(of: Any, row: Row, base: Any, way: str) -> None:
        tried.append((row.name, way))
        if row.name == "h=1":
            raise RuntimeError("FlashAttention forward only supports head dimension at most 256")

    other = "all_tables anchor figures lab_text ladder_rates outputs_2017 table1 table2 table4_grid"  # no other layers
    assert {path.stem for path in (ROOT / "experiments").glob("*.py")} == {*first.TABLES, *other.split()}
    monkeypatch.setattr(first, "_one_row", one_row)
    monkeypatch.setattr(first, "TABLES", ("table3_A",))
    found = first.every_row(asked(first, 60))
    assert tried == [(name, way) for way in ("bf16", "fp32") for name in ("h=1", "h=4", "h=16", "h=32")]
    assert found["done"] == {"bf16": 3, "fp32": 3}
    assert found["failed"].keys() == {"table3_A, h=1, bf16", "table3_A, h=1, fp32"}
    monkeypatch.setattr(first, "TABLES", ("table3_A", "table3_D"))  # h=1 is too wide; the others' layers are the base's
    assert first.compiled_rows(replace(asked(first, 60), sizes=first.WHOLE))["done"] == {"compiled": 4}
    assert [name for name, way in tried if way == "compiled"] == ["h=4", "h=16", "h=32", "P_drop=0.0"]


def test_it_ends_in_time_and_names_what_it_did_not_reach(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(of: Any) -> None:
        time.sleep(60)

    assert [*first.QUESTIONS][:6] == ["versions", "kernel", "loop", "correct", "steps", "parts"], "the goal comes first"
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


def test_a_child_that_hangs_is_killed(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    child = mock.Mock(exitcode=None)
    monkeypatch.setattr(first.multiprocessing, "get_context", lambda how: mock.Mock(Process=lambda **_: child))
    monkeypatch.setattr(first, "_run_of", lambda *_: (torch.nn.Linear(1, 1), mock.Mock()))
    assert first.recovery(asked(first, 1))["exit code of the killed"] is None
    assert [name for name, *_ in child.method_calls] == ["start", "join", "kill", "join"]


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
