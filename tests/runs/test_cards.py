"""Which cards there are, by drivers that stand in for real ones, and which are refused before training."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from own_signals import own_signals

from repro import experiment
from repro.runs import cards
from repro.runs.cards import has_kernels, refuse_cards, visible
from repro.runs.options import Precision

CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


class Nvml:
    """NVIDIA's library with cards of these names; `works` is False where the kernel's module is of another version."""

    def __init__(self, *names: str, works: bool = True) -> None:
        self.names, self.works = names, works

    def nvmlInit_v2(self) -> int:
        return 0 if self.works else 18

    def nvmlShutdown(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, n: Any) -> int:
        n._obj.value = len(self.names)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, i: int, card: Any) -> int:
        card._obj.value = i + 1
        return 0

    def nvmlDeviceGetMemoryInfo(self, card: ctypes.c_void_p, memory: Any) -> int:
        assert card.value is not None
        memory._obj.free = 1_000 * card.value
        return 0

    def nvmlDeviceGetName(self, card: ctypes.c_void_p, name: Any, room: int) -> int:
        assert card.value is not None
        name.value = self.names[card.value - 1].encode()[: room - 1]
        return 0


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in cards.HIDE:
        monkeypatch.delenv(name, raising=False)
    cards.present.cache_clear()
    yield
    cards.present.cache_clear()


def use(monkeypatch: pytest.MonkeyPatch, nvml: Nvml | None, place: str = cards.NVML[0]) -> None:
    def opened(name: str) -> Nvml:
        if nvml is None or name != place:
            raise OSError(f"{name}: cannot open shared object file")
        return nvml

    monkeypatch.setattr(cards.ctypes, "CDLL", opened)
    monkeypatch.setattr(cards, "AMD", Path("/nowhere"))


@pytest.mark.parametrize("place", cards.NVML)  # the second: WSL2, which has nothing in /dev or /proc
def test_the_driver_says_which_cards_there_are(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    use(monkeypatch, Nvml("NVIDIA A100", "Tesla T4"), place)
    assert visible({}) == {"0": "NVIDIA A100", "1": "Tesla T4"}
    assert visible({"CUDA_VISIBLE_DEVICES": "1,0"}) == {"1": "Tesla T4", "0": "NVIDIA A100"}
    assert list(visible({"CUDA_VISIBLE_DEVICES": "GPU-5"})) == ["GPU-5"]
    assert visible({"CUDA_VISIBLE_DEVICES": ""}) == visible({"CUDA_VISIBLE_DEVICES": "-1"}) == {}


def test_the_fullest_of_the_visible_cards_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Nvml("a", "b", "c"))
    assert cards.free_on_cards({}) == 1_000
    assert cards.free_on_cards({"CUDA_VISIBLE_DEVICES": "2,1"}) == 2_000
    assert cards.free_on_cards({"CUDA_VISIBLE_DEVICES": "GPU-5"}) is None
    use(monkeypatch, None)
    assert cards.free_on_cards({}) is None


def test_there_are_none_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, None)
    assert visible({}) == visible({"CUDA_VISIBLE_DEVICES": "0"}) == {}
    cards.present.cache_clear()
    use(monkeypatch, Nvml("NVIDIA A100", works=False))
    assert visible({}) == {}


def test_cards_of_amd_are_counted(tmp_path: Path) -> None:
    for node, number in {"0": "0", "1": "41811", "2": "5"}.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "gpu_id").write_text(f"{number}\n")
    assert cards._of_amd(tmp_path) == ("AMD GPU", "AMD GPU")


@pytest.mark.parametrize(
    ("capability", "kernels", "runs"),
    [
        ((8, 0), CU130, True),
        ((8, 9), CU130, True),  # RTX 40xx, by the code for 8.6
        ((7, 0), CU130, False),  # V100
        ((12, 1), [*CU130, "compute_120"], True),
        ((9, 0), ["sm_90a"], True),
        ((9, 0), ["gfx90a"], False),
    ],
)
def test_kernels_run_within_their_generation(capability: tuple[int, int], kernels: list[str], runs: bool) -> None:
    assert has_kernels(capability, kernels) is runs


def on(monkeypatch: pytest.MonkeyPatch, name: str, capability: tuple[int, int], precision: Precision) -> None:
    """Ask about a card that PyTorch finds."""
    use(monkeypatch, Nvml(name))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda i: name)
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda i: capability)
    monkeypatch.setattr("torch.cuda.get_arch_list", lambda: CU130)
    refuse_cards(precision)


def test_old_cards_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "NVIDIA H100", (9, 0), "bf16")
    cards.present.cache_clear()
    on(monkeypatch, "Tesla T4", (7, 5), "fp32")
    with pytest.raises(ValueError, match=r"card of compute capability 8\.0 or newer.* got Tesla T4 with 7\.5\. Type"):
        on(monkeypatch, "Tesla T4", (7, 5), "bf16")
    with pytest.raises(ValueError, match=r"V100 has compute capability 7\.0, for which PyTorch .*--device cpu"):
        on(monkeypatch, "Tesla V100", (7, 0), "fp32")


@pytest.mark.parametrize(
    ("cuda", "said"),
    [
        (None, r"PyTorch .* was built without CUDA\. Install the same version from PyTorch's own index"),
        ("13.0", r"The driver may be too old for CUDA 13\.0, .* \(The NVIDIA driver on your system is too old\)\. Upd"),
    ],
)
def test_a_card_that_pytorch_does_not_find_is_refused(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, said: str
) -> None:
    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old\nUpdate")

    use(monkeypatch, Nvml("NVIDIA A100"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr("torch.cuda.init", init)
    with pytest.raises(ValueError, match=rf"expected PyTorch to find NVIDIA A100, got no GPU\. {said}.* --device cpu"):
        refuse_cards("fp32")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    refuse_cards("fp32")


def test_the_processor_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in cards.HIDE:
        monkeypatch.setenv(name, "0")
    monkeypatch.chdir(tmp_path)
    with own_signals(), pytest.raises(SystemExit):
        experiment.main("t", [], ["--device=cpu", "--rows", "nothing"])
    assert {name: os.environ[name] for name in cards.HIDE} == cards.HIDE


def test_cards_are_refused_before_processes_begin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(precision: Precision) -> None:
        raise ValueError(f"no card for {precision}")

    monkeypatch.setattr(experiment, "refuse_cards", refuse)
    monkeypatch.setattr(experiment, "launch", lambda *_: pytest.fail("it began"))
    places = [f"--{name}-dir={tmp_path / name}" for name in ("results", "runs", "cache")]
    with pytest.raises(SystemExit) as ended:
        experiment.main("t", [], ["--scale=smoke", *places, "--devices=2"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: no card for fp32\n"
