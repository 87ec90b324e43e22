"""The badge of a run: how far its reproducibility was shown while it was made.

    L0  every update read the sentences that the plan names: the same on every machine
    L1  one CPU process: to the bit, as long as versions, processor and threads are the same
    L2  one GPU, in PyTorch's deterministic mode: to the bit
    L3  several CPU processes: to the bit, as many of them

A badge stands for what was checked in this run, never for what ought to hold.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from repro.results.provenance import Provenance
from repro.results.record import Determinism
from repro.storage.journal import FRAME, Line
from repro.training.replay_check import ReproducibilityReport, changes

CLOCKED = ("tokens_per_second",)  # values of a journal line that are never the same twice
SHOWN = 3  # lines that a note names


def conditions(stamp: Provenance, devices: int, arithmetic: Iterable[str]) -> dict[str, Any]:
    """The conditions outside the run that may change its last digits, as plain values."""
    versions = {f"version of {name}": version for name, version in stamp["versions"].items()}
    return versions | {
        "python": stamp["python"],
        "processor": ", ".join(filter(None, (stamp["cpu"], stamp.get("cpu_model")))),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": stamp["device"],
        "threads": stamp["n_threads"],
        "processes": devices,
        "arithmetic": ", ".join(arithmetic),
        "on GPU": torch.cuda.is_available(),
        "deterministic mode": torch.are_deterministic_algorithms_enabled(),
    }


def repeated_lines(lines: Iterable[Line]) -> tuple[int, list[str]]:
    """How many journal lines were written again after a crash, and which of them had changed."""
    before: dict[tuple[str, int], dict[str, float]] = {}
    n, unequal = 0, []
    for line in sorted(lines, key=lambda line: line["attempt"]):
        key = line["kind"], line["step"]
        values = {name: value for name, value in line.items() if name not in FRAME + CLOCKED}
        if key in before:
            n += 1
            unequal += [f"{line['kind']} {line['step']}"] if repr(before[key]) != repr(values) else []
        before[key] = values
    return n, unequal


def determinism(
    report: ReproducibilityReport, plan: str, shares: int, lines: Sequence[Line], weights: str | None
) -> Determinism:
    """The badge, the digests and counts it rests on, and in words what speaks against a higher one.

    `plan` is the digest of what should have been read, `shares` in how many micro-batches.
    """
    n, unequal = repeated_lines(lines)
    now = report.conditions[-1][1] if report.conditions else {}
    against = list(changes(report.conditions))
    if unequal:
        against.append(f"{len(unequal)} of {n} repeated journal lines differ: {', '.join(unequal[:SHOWN])}")
    if report.unequal:
        against.append(f"{report.unequal} of {report.replayed} micro-batches computed twice differ")
    badge: str | None = "L0"
    if report.followed != shares or report.order != plan:
        against.insert(0, f"{report.followed} of {shares} micro-batches were followed, or they were not those planned")
        badge = None
    elif against:
        pass  # a check failed
    elif now.get("on GPU") and not now.get("deterministic mode"):
        against.append("a GPU, and not in PyTorch's deterministic mode")
    elif now.get("processes", 1) > 1:
        if n and not now.get("on GPU"):
            badge = "L3"
        else:
            against.append("several processes, and no journal line was repeated on CPUs")
    elif not report.replayed:
        against.append("no micro-batch was computed twice")
    else:
        badge = "L2" if now.get("on GPU") else "L1"
    return {
        "badge": badge,
        "against": against,
        "order": report.order,
        "plan": plan,
        "weights": weights,
        "replayed": report.replayed,
        "repeated_lines": n,
    }


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and bytes: two runs with identical weights share it."""
    sha256 = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        sha256.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\0".encode())
        sha256.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return sha256.hexdigest()
