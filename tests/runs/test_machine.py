"""What this machine has: memory and processors by what the system says, cards by what stands in for the driver.

Cards that PyTorch cannot use are refused before training.
"""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from own_signals import own_signals, places

from repro import experiment
from repro.runs import machine
from repro.runs.machine import free_memory, granted, has_kernels, refuse_cards, visible
from repro.runs.options import Precision

Answer = Callable[..., None]
CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Has the driver's command answer with these lines."""
    for name in machine.HIDE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(machine, "OF_WSL", "")
    monkeypatch.setattr(machine, "ctypes", mock.Mock(CDLL=mock.Mock(side_effect=OSError)))
    monkeypatch.setattr(machine, "present", machine.present.__wrapped__)  # it would be asked once

    def answer(*lines: str, code: int = 0) -> None:
        text = "".join(f"echo '{line}'\n" for line in lines)
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{text}exit {code}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    return answer


def test_the_driver_says_which_cards_there_are(driver: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert visible() == {}, "there is no driver"
    driver("NVIDIA A100", "Tesla T4")
    assert visible() == {"0": "NVIDIA A100", "1": "Tesla T4"}
    for said, found in (("1,0", {"1": "Tesla T4", "0": "NVIDIA A100"}), ("", {}), ("-1", {})):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
        assert visible() == found
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5")
    assert list(visible()) == ["GPU-5"]
    driver("No devices were found", code=6)
    assert visible() == {}


def test_a_driver_that_fails_is_no_processor(driver: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver("Failed to initialize NVML: Driver/library version mismatch", code=18)
    with pytest.raises(ValueError, match=r"exit status 18\. Failed .* mismatch\. Repair the driver.* --device cpu\.$"):
        refuse_cards("fp32")
    monkeypatch.setattr(machine, "PATIENCE", 0.1)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(ValueError, match=r"timed out after 0\.1 seconds\. Repair the driver.* --device cpu\.$"):
        refuse_cards("fp32")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    refuse_cards("fp32")


def test_without_a_command_pytorch_is_asked(driver: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver("NVIDIA RTX A2000")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(machine, "OF_WSL", str(tmp_path))
    assert visible() == {"0": "NVIDIA RTX A2000"}, "where Windows has it"
    (tmp_path / "nvidia-smi").unlink()
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda i: f"card {i}")
    assert visible() == {}, "without the driver's library"
    machine.ctypes.CDLL.side_effect = None  # type: ignore[attr-defined]
    assert visible() == {"0": "card 0", "1": "card 1"}


def test_kernels_run_within_their_generation() -> None:
    for capability in ((8, 0), (8, 9), (9, 0)):  # RTX 40xx by the code for 8.6
        assert has_kernels(capability, CU130)
    assert has_kernels((12, 1), [*CU130, "compute_120"])
    assert has_kernels((9, 0), ["sm_90a"])
    assert not has_kernels((9, 0), ["gfx90a"])
    assert not has_kernels((7, 0), CU130), "V100"


def on(monkeypatch: pytest.MonkeyPatch, name: str, capability: tuple[int, int], precision: Precision) -> None:
    """Ask about a card that PyTorch finds."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "present", lambda: (name,))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda i: name)
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda i: capability)
    monkeypatch.setattr("torch.cuda.get_arch_list", lambda: CU130)
    refuse_cards(precision)


def test_old_cards_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "NVIDIA H100", (9, 0), "bf16")
    on(monkeypatch, "Tesla T4", (7, 5), "fp32")
    with pytest.raises(ValueError, match=r"card of compute capability 8\.0 or newer.* got Tesla T4 with 7\.5\. Type"):
        on(monkeypatch, "Tesla T4", (7, 5), "bf16")
    with pytest.raises(ValueError, match=r"V100 has compute capability 7\.0, for which PyTorch .*--device cpu"):
        on(monkeypatch, "Tesla V100", (7, 0), "fp32")


def test_a_card_that_pytorch_does_not_find_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old\nUpdate")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "present", lambda: ("NVIDIA A100",))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.init", init)
    for cuda, said in (
        (None, r"PyTorch .* was built without CUDA\. Install the same version from PyTorch's own index"),
        ("13.0", r"The driver may be too old for CUDA 13\.0, .* \(The NVIDIA driver on your system is too old\)\. Upd"),
    ):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        with pytest.raises(ValueError, match=rf"find NVIDIA A100, got no GPU\. {said}.* --device cpu"):
            refuse_cards("fp32")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    refuse_cards("fp32")


def test_the_processor_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in machine.HIDE:
        monkeypatch.setenv(name, "0")
    monkeypatch.chdir(tmp_path)
    with own_signals(), pytest.raises(SystemExit):
        experiment.main("t", [], ["--device=cpu", "--rows", "nothing"])
    assert {name: os.environ[name] for name in machine.HIDE} == machine.HIDE


def test_cards_are_refused_before_processes_begin(
    driver: Answer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    driver("Tesla T4")
    monkeypatch.setattr(experiment, "launch", lambda *_: pytest.fail("it began"))
    with pytest.raises(SystemExit) as ended:
        experiment.main("t", [], ["--scale=smoke", *places(tmp_path), "--devices=2"])
    assert ended.value.code == 2
    said = "error: --devices 2: expected a card for each process, got 1: Tesla T4. To train on the processor"
    assert capsys.readouterr().err.startswith(said)


def test_cards_of_amd_are_counted(tmp_path: Path) -> None:
    for node, number in {"0": "0", "1": "41811", "2": "5"}.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "gpu_id").write_text(f"{number}\n")
    assert machine.of_amd(tmp_path) == ("AMD GPU", "AMD GPU")


def test_what_memory_the_control_group_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: SimpleNamespace(available=2_000_000))
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


def test_what_a_container_grants(tmp_path: Path) -> None:
    assert granted(tmp_path) is None
    for said, wanted in ((b"max 100000\n", None), (b"150000 100000\n", 2), (b"50000 100000\n", 1)):
        (tmp_path / "cpu.max").write_bytes(said)
        assert granted(tmp_path) == wanted
