"""Which run is meant by what was typed: `latest`, a folder, an id or the beginning of one."""

import os
from pathlib import Path

from repro.results import record

LATEST = "latest"  # the run that was finished last
SHOWN = 5  # ids that a message names


def run_folder(typed: str, runs: Path) -> Path:
    """The folder of the run that is meant; a ValueError says why none is, or which of several may be."""
    if typed == LATEST:
        return _latest(runs)
    if os.sep in typed or os.path.isdir(typed):  # also of what is too long for a name
        return Path(typed)
    there = runs.glob("*") if os.path.isdir(runs) else ()
    found = sorted(path for path in there if typed and path.name.startswith(typed) and path.is_dir())
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(
            f"{runs} holds no run {typed or 'without a name'}; expected {LATEST}, the folder of a run, its id or the "
            "beginning of it. If it is elsewhere, name the folder of runs (--runs-dir, or runs_dir in Python)."
        )
    more = ", ..." if len(found) > SHOWN else ""
    raise ValueError(
        f"{len(found)} runs in {runs} begin with {typed}: {', '.join(path.name for path in found[:SHOWN])}{more}. "
        "Type more of the id."
    )


def _latest(runs: Path) -> Path:
    """The folder of the newest record of a run that came to its end; one that diverged has nothing to work with."""
    files = runs.glob("*/record.json") if os.path.isdir(runs) else ()  # also of what is too long for a name
    newest_first = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in newest_first:
        if record.load(file).status == "finished":
            return file.parent
    raise ValueError(
        f"{runs} holds no finished run, so there is no {LATEST}. Run an experiment first, or name another folder of "
        "runs (--runs-dir, or runs_dir in Python)."
    )
