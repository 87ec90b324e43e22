"""What the machine does is measured, as far as it can be."""

import sys
from types import SimpleNamespace

import pytest

from repro.tracking.mirror import _gpus, measure_system


def test_gpus_are_measured_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=3e9 + gpu),
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=90 + gpu),
        nvmlDeviceGetPowerUsage=lambda gpu: 350_000 + gpu,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    _gpus.cache_clear()
    found = measure_system()
    assert (found["gpu_0_memory_usage_megabytes"], found["gpu_0_power_usage_watts"]) == (3000, 350)
    assert found["gpu_1_utilization_percentage"] == 91
    monkeypatch.setattr(library, "nvmlDeviceGetPowerUsage", lambda gpu: 1 / 0)  # not supported
    assert found.keys() - measure_system().keys() == {"gpu_0_power_usage_watts", "gpu_1_power_usage_watts"}

    monkeypatch.setattr(library, "nvmlInit", lambda: 1 / 0)  # no driver
    _gpus.cache_clear()
    assert not any("gpu" in name for name in measure_system())
    _gpus.cache_clear()
