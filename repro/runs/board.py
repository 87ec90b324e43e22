"""What a sweep says before it begins: what is done, running, begun and missing, and how long it will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from repro.runs.forecast import Estimate, duration
from repro.runs.speed.schedule import makespan

if TYPE_CHECKING:
    from repro.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class State:
    """Where one run stands."""

    seed: int
    what: str
    spent: float = 0.0  # seconds
    to_come: float = 0.0  # seconds
    measured: bool = True  # what is to come; False: guessed


def _state(run: "Run", expected: Estimate) -> State:
    seed, steps = run.settings.seed, run.settings.hyper.steps
    if done := run.finished():
        return State(seed=seed, what="done", spent=done.cost["train_seconds"] + done.cost["decode_seconds"])
    if run.is_in_hand():
        return State(seed=seed, what="running")
    step = run.last_step()
    what = f"at step {step:,} of {steps:,}" if step else "missing"
    return State(seed=seed, what=what, to_come=expected.to_come(step / steps), measured=expected.measured)


def board(runs: "Sequence[Run]", expected: Sequence[Estimate], n_workers: int = 1, shard: str | None = None) -> str:
    """What is done, running, begun and missing, row by row, with what it took and what it will take.

    Of a shard it says that there is more to the sweep than these runs; of several workers, when the last is done.
    """
    rows: dict[str, list[State]] = {}
    for run, one in zip(runs, expected, strict=True):
        rows.setdefault(run.settings.row, []).append(_state(run, one))
    width = max(len(row) for row in rows) + 2
    lines = [f"{'row':<{width}}{'spent':>9}{'to come':>9}  seeds"]
    everything = [state for states in rows.values() for state in states]
    for row, states in [*rows.items(), ("in all", everything)]:
        seeds = _by_state(states) if row in rows else _in_all(everything, n_workers)
        spent, rest = sum(state.spent for state in states), sum(state.to_come for state in states)
        lines.append(f"{row:<{width}}{duration(spent):>9} {duration(rest):>8}  {seeds}".rstrip())
    return "\n".join([*([f"Shard {shard}: only these runs of the sweep."] if shard else []), *lines])


def _in_all(states: Sequence[State], n_workers: int) -> str:
    """When the last run ends, and whether that is known."""
    words = []
    left = [state.to_come for state in states if state.to_come]
    if n_workers > 1 and len(left) > 1:
        words.append(f"{duration(makespan(left, n_workers))} with {n_workers} at a time")
    if not all(state.measured for state in states):
        words.append("unmeasured")
    return ", ".join(words)


def _by_state(states: Sequence[State]) -> str:
    """1 2 done, 3 missing"""
    seeds: dict[str, list[str]] = {}
    for state in states:
        seeds.setdefault(state.what, []).append(str(state.seed))
    return ", ".join(f"{' '.join(of)} {what}" for what, of in seeds.items())
