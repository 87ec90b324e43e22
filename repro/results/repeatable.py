"""How far the runs of a table were shown, while they were made, to come out again, and on what processors."""

from collections.abc import Iterable
from typing import NamedTuple

from repro.results.provenance import Provenance
from repro.results.record import Record

BADGES = {  # as `repro/runs/determinism.py` gives them
    "L0": "read what the plan says, the same on every machine",
    "L1": "one CPU process, the same to the bit on such a processor",
    "L2": "one GPU, the same to the bit on such a card",
    "L3": "several CPU processes, the same to the bit by as many",
}
NOT_LOOKED_AT, NO_BADGE = (
    "not checked, from the time before badges",
    "no badge, since what was read is not what was planned",
)


class Shown(NamedTuple):
    """What runs have in common."""

    earned: str
    processor: str
    against: tuple[str, ...] = ()  # a higher badge


def repeatable(records: Iterable[Record]) -> list[str]:
    """A line for each badge and processor: how many runs, how much was computed twice, what stands against more."""
    found: dict[Shown, list[Record]] = {}
    for record in records:
        found.setdefault(_shown(record), []).append(record)
    return [_line(shown, found[shown]) for shown in sorted(found)]


def computed_on(stamp: Provenance) -> str:
    """The GPU or the processor; processors of one name are of several models."""
    on, model = stamp["device"] or stamp["cpu"], stamp.get("cpu_model")
    return f"{on} ({model})" if on == stamp["cpu"] and model else on


def _shown(record: Record) -> Shown:
    stamp, told = record.stamp, record.determinism
    processor = f"{computed_on(stamp)}, {stamp.get('instructions') or 'instructions not noted'}"
    if told is None:
        return Shown(NOT_LOOKED_AT, processor)
    badge = told["badge"]
    return Shown(f"{badge}, {BADGES.get(badge, '')}" if badge else NO_BADGE, processor, tuple(told["against"]))


def _line(shown: Shown, records: list[Record]) -> str:
    """L1, one CPU process, ...: 8 runs; AMD EPYC, AVX2; 16 micro-batches computed twice"""
    twice = sum(record.determinism["replayed"] for record in records if record.determinism)
    parts = [f"{len(records)} run{'s' * (len(records) != 1)}", shown.processor]
    parts += [f"{twice:,} micro-batches computed twice"] if twice else []
    parts += [f"what rules out a higher badge: {', '.join(shown.against)}"] if shown.against else []
    return f"{shown.earned[0].upper()}{shown.earned[1:]}: {'; '.join(parts)}."
