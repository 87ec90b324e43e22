"""Which run is meant by what was typed: `best`, `base`, `latest`, a name of ours, a folder, an id or its beginning."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from repro.results import record
from repro.results.places import PACKAGE
from repro.results.record import BASE, Record

LATEST = "latest"  # the run that was finished last
BEST = "best"  # the highest score on dev among runs that can be compared with that one
NAMED = (BEST, BASE, LATEST)
PRETRAINED = "pretrained"  # the folder of the runs that `repro export` wrote for this code
SHOWN = 5  # ids that a message names


class Ended(NamedTuple):
    """A run that came to its end."""

    folder: Path
    ended: float  # when, in seconds
    record: Record

    @property
    def score(self) -> float | None:
        """The first score of its task, on dev: BLEU or F1."""
        return self.record.score("dev", self.record.about["scores"][0])


def ended_runs(runs: Path) -> Iterator[Ended]:
    """Every run with a record, the newest first; each is read when it is asked for."""
    files = runs.glob("*/record.json") if os.path.isdir(runs) else ()  # also of what is too long for a name
    for ended, file in sorted(((file.stat().st_mtime_ns, file) for file in files), reverse=True):
        yield Ended(file.parent, ended / 1e9, record.load(file))


def pretrained() -> dict[str, Path]:
    """Finished runs that come with this code, by name: inside an installed package, beside that of a checkout."""
    inside = PACKAGE / PRETRAINED
    place = inside if inside.is_dir() else PACKAGE.parent / PRETRAINED
    return {file.parent.name: file.parent for file in sorted(place.glob("*/record.json"))}


def run_names() -> str:
    """What means a run in any folder of runs, as messages have it."""
    return ", ".join([*NAMED, *pretrained()])


def advice() -> str:
    """What to do where there is no run yet."""
    return f"Run an experiment first, or take one that comes with this code: {', '.join(pretrained()) or 'none'}."


def run_folder(typed: str, runs: Path) -> Path:
    """The folder of the run that is meant; a ValueError says why none is, or which of several may be."""
    if typed in NAMED:
        return _named(typed, runs)
    if typed in (ready := pretrained()):
        return ready[typed]
    if os.sep in typed or os.path.isdir(typed):  # also of what is too long for a name
        return Path(typed)
    there = sorted(path for path in runs.glob("*") if path.is_dir()) if os.path.isdir(runs) else []
    found = [path for path in there if typed and path.name.startswith(typed)]
    if len(found) == 1:
        return found[0]
    if not found:
        near = difflib.get_close_matches(typed, [*NAMED, *ready, *(path.name for path in there)], n=1)
        raise ValueError(
            f"{runs} holds no run {typed or 'without a name'}{f'; did you mean {near[0]}?' if near else '.'} Expected "
            f"{run_names()}, the folder of a run, its id or the beginning of it. Of runs elsewhere, name the folder "
            "(--runs-dir, or runs_dir in Python)."
        )
    more = ", ..." if len(found) > SHOWN else ""
    raise ValueError(
        f"{len(found)} runs in {runs} begin with {typed}: {', '.join(path.name for path in found[:SHOWN])}{more}. "
        "Type more of the id."
    )


def _named(word: str, runs: Path) -> Path:
    """The newest finished run, the newest of the base row, or the best of those that compare with the newest.

    One that diverged has nothing to work with.
    """
    done = (one for one in ended_runs(runs) if one.record.status == "finished")
    if word == BASE:
        done = (one for one in done if one.record.row == BASE)
    if (newest := next(done, None)) is None:
        row = " of the base row" if word == BASE else ""
        raise ValueError(
            f"{runs} holds no finished run{row}, so there is no {word}. {advice()} Or name another folder of runs "
            "(--runs-dir, or runs_dir in Python)."
        )
    if word != BEST:
        return newest.folder
    alike = [one for one in done if _world(one.record) == _world(newest.record)]
    return max([newest, *alike], key=lambda one: one.score or 0.0).folder


def _world(run: Record) -> tuple[str, str, str, str]:
    """What two runs share whose scores can be compared."""
    return run.scale, run.pair, run.corpus["sha256"], run.about["scores"][0]
