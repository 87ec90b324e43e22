"""What the machine does while it trains."""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any


def measure_system() -> dict[str, float]:
    """What the machine does, under MLflow's own names, so that its page of system metrics shows them."""
    import psutil

    memory = psutil.virtual_memory()
    values = {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / 1e6,
        "system_memory_usage_percentage": memory.percent,
        "process_memory_megabytes": psutil.Process().memory_info().rss / 1e6,
    }
    for i, gpu in enumerate(_gpus()):
        import pynvml

        asked: dict[str, Callable[[Any], float]] = {
            "memory_usage_megabytes": lambda gpu: pynvml.nvmlDeviceGetMemoryInfo(gpu).used / 1e6,
            "utilization_percentage": lambda gpu: pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "power_usage_watts": lambda gpu: pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
        }
        for name, ask in asked.items():
            with suppress(Exception):  # a card, or a part of one, need not support each of them
                values[f"gpu_{i}_{name}"] = ask(gpu)
    return values


@lru_cache(maxsize=1)
def _gpus() -> list[Any]:
    """NVIDIA's GPUs, where there are any and the optional nvidia-ml-py is installed."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # the library's own errors where there is no driver
        return []
