"""Where the project keeps results and runs, and which run a user means.

A run is typed as `best`, `base`, `latest`, a name of ours, a folder, an id or its beginning.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from repro.results.provenance import PACKAGE as PACKAGE
from repro.results.record import BASE, Record, load

# published results, one's own, and the experiment files that make them
PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")
# published folders whose presets or options no longer exist: no command of today makes such runs again
RETIRED = frozenset({"laptop-20000-pairs", "laptop-5000-pairs", "captions-6000-updates"})
LATEST = "latest"  # the run that finished last
BEST = "best"  # the highest score on dev among the runs that can be compared with the latest
NAMED = (BEST, BASE, LATEST)
PRETRAINED = "pretrained"  # the folder of the runs that `repro export` wrote for this code
ELSEWHERE = "If runs are in another folder, name it (--runs-dir, or runs_dir in Python)."


def experiment_files() -> Path:
    """The folder of this code's experiment files: inside an installed package, or beside it in a checkout."""
    installed = PACKAGE / EXPERIMENTS
    return installed if installed.is_dir() else PACKAGE.parent / EXPERIMENTS


class Ended(NamedTuple):
    """A run that ended: it has a record."""

    folder: Path
    ended: float  # when, in seconds
    record: Record

    @property
    def score(self) -> float | None:
        """The first score of its task, on dev: BLEU or F1."""
        return self.record.score("dev", self.record.about["scores"][0])


def ended_runs(runs: Path) -> Iterator[Ended]:
    """Every run with a record, the newest first; each record is read only when it is needed."""
    files = runs.glob("*/record.json") if os.path.isdir(runs) else ()  # no error for a name that is too long
    for ended, file in sorted(((file.stat().st_mtime_ns, file) for file in files), reverse=True):
        yield Ended(file.parent, ended / 1e9, load(file))


def pretrained() -> dict[str, Path]:
    """Finished runs that come with this code, by name: inside an installed package, or beside it in a checkout."""
    inside = PACKAGE / PRETRAINED
    place = inside if inside.is_dir() else PACKAGE.parent / PRETRAINED
    return {file.parent.name: file.parent for file in sorted(place.glob("*/record.json"))}


def run_names() -> str:
    """The words that name a run in any folder of runs, for messages."""
    return ", ".join([*NAMED, *pretrained()])


def advice() -> str:
    """What to do where there is no run yet."""
    return f"Run an experiment first, or take one that comes with this code: {', '.join(pretrained()) or 'none'}."


def run_folder(typed: str, runs: Path) -> Path:
    """The folder of the run that was `typed`. Raises ValueError that says why there is none, or lists several."""
    if typed in NAMED:
        return _named(typed, runs)
    if typed in (ready := pretrained()):
        return ready[typed]
    if os.sep in typed or os.path.isdir(typed):  # no error for a name that is too long
        return Path(typed)
    there = sorted(path for path in runs.glob("*") if path.is_dir()) if os.path.isdir(runs) else []
    found = [path for path in there if typed and path.name.startswith(typed)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found)
        raise ValueError(f"{len(found)} runs in {runs} begin with {typed}: {names}. Type more of the id.")
    raise ValueError(
        f"{runs} holds no run {typed or 'without a name'}. Expected {run_names()}, the folder of a run, its id or the "
        f"beginning of it. {ELSEWHERE}"
    )


def _named(word: str, runs: Path) -> Path:
    """The newest finished run, the newest of the base row, or the best of those comparable with the newest.

    Diverged runs are left out, as they have no usable weights.
    """
    done = (one for one in ended_runs(runs) if one.record.status == "finished")
    if word == BASE:
        done = (one for one in done if one.record.row == BASE)
    if (newest := next(done, None)) is None:
        row = " of the base row" if word == BASE else ""
        raise ValueError(f"{runs} holds no finished run{row}, so there is no {word}. {advice()} {ELSEWHERE}")
    if word != BEST:
        return newest.folder
    alike = [one for one in done if _world(one.record) == _world(newest.record)]
    return max([newest, *alike], key=lambda one: one.score or 0.0).folder


def _world(run: Record) -> tuple[str, str, str, str]:
    """What two runs must share for their scores to be comparable."""
    return run.scale, run.pair, run.corpus["sha256"], run.about["scores"][0]
