"""What a run is made of, field by field, and what to say where an unfinished run was made of something else.

The same fields give the same id, so the same command resumes where it was stopped. If a field has changed, so has the
id. The command would then start over in another folder, with hours of work in the first: it refuses, and says why.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from repro.results.kinds import OF_CODE, equal_codes, is_equal_code
from repro.results.provenance import Provenance, fingerprints
from repro.tracking.run_folder import RECORD, describe
from repro.training.checkpoint_files import checkpoints, step_of

SAME = ("table", "row", "seed", "scale", "corpus", "pair")  # the tags by which a person knows a run
DIGITS = 16  # of a hash, where it is only compared
SHOWN = 5  # files that a message names
TEXT = re.compile(r"-[0-9a-f]{8}$")  # the end of a scale's name that tells texts of one's own apart


class Origin(TypedDict):
    """What a run is made of."""

    decides: dict[str, Any]  # all that decides the result, the code as one hash
    code: dict[str, str]  # the first digits of each deciding file's hash
    commit: str | None
    dirty: bool


class Changed(ValueError):
    """An unfinished run has other settings, text or code than the same command has now."""


def origin(decides: Mapping[str, Any], stamp: Provenance, system: Any = None) -> Origin:
    """What `run.json` keeps of what a run is made of."""
    code = {name: digest[:DIGITS] for name, digest in fingerprints(system).items()}
    return {"decides": dict(decides), "code": code, "commit": stamp["commit"], "dirty": stamp["dirty"]}


def refuse_changed(
    runs: Path, run: str, tags: Mapping[str, object], decides: Mapping[str, Any], system: Any = None
) -> None:
    """Raise `Changed` if `run` is about to begin while another of the same name is not finished."""
    if (runs / run / "run.json").exists():
        return  # it has begun before: with --fork beside the other one, or it is the other one
    for folder, found, step in _unfinished(runs):
        if any(found["tags"].get(name) != str(tags[name]) for name in SAME):
            continue
        before: Origin = found["origin"]
        raise Changed(
            f"{tags['row']} seed {tags['seed']} is not finished: {folder} holds it up to step {step:,}, "
            f"but the same command would now start a different run. What has changed:\n  "
            + "\n  ".join(differences(before, decides, system))
            + f"\n{_advice(folder, before, decides)}"
        )


def of_another_text(runs: Path, run: str, tags: Mapping[str, object]) -> Iterator[str]:
    """A line for each unfinished run of the same name whose text of one's own was different: it may have been edited.

    Text of one's own is part of the name of a scale, so such a run is a different one, and nothing is refused.
    """
    if (runs / run / "run.json").exists():
        return
    names = {**tags, "scale": TEXT.sub("", str(tags["scale"]))}
    for folder, found, step in _unfinished(runs):
        theirs = {**found["tags"], "scale": TEXT.sub("", found["tags"].get("scale", ""))}
        if found["tags"].get("scale") != tags["scale"] and all(theirs.get(name) == str(names[name]) for name in SAME):
            yield (
                f"{folder} holds {tags['row']} seed {tags['seed']} up to step {step:,}, trained on a different text or "
                "vocabulary. That run is kept; this one begins at step 0."
            )


def _unfinished(runs: Path) -> Iterator[tuple[Path, dict[str, Any], int]]:
    """The folder of each run that has a checkpoint and no record, what it is, and how far it came."""
    for folder in sorted(path.parent for path in runs.glob("*/run.json")):
        saved = checkpoints(folder / "checkpoints")
        if saved and not (folder / RECORD).exists():
            yield folder, describe(folder), step_of(saved[-1])


def differences(before: Origin, decides: Mapping[str, Any], system: Any = None) -> Iterator[str]:
    """A line for each field that differs, with the files for the code."""
    there = before["decides"]
    for name in sorted(there.keys() | decides.keys()):
        alike = equal_codes(decides[name]) if name in OF_CODE and name in decides else [decides.get(name)]
        if there.get(name) in alike or (name == "ids" and name not in there):  # runs from before the wall have none
            continue
        if name == "code":
            now = {file: digest[:DIGITS] for file, digest in fingerprints(system).items()}
            files = sorted(before["code"].keys() | now.keys())
            changed = [f"repro/{file}" for file in files if before["code"].get(file) != now.get(file)]
            more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            yield f"code: {', '.join(changed[:SHOWN])}{more}"
        else:
            yield f"{name}: {_short(there.get(name))} there, {_short(decides.get(name))} now"


def _short(value: Any) -> Any:
    return value[:DIGITS] if isinstance(value, str) else value


def _advice(folder: Path, before: Origin, decides: Mapping[str, Any]) -> str:
    fork = f"To start over and keep {folder}, add --fork."
    if is_equal_code(before["decides"], decides):
        return f"To resume it, use the settings and the text it had. {fork}"
    if before["commit"] is None or before["dirty"]:
        return f"Its code was never committed: undo the changes to resume it. {fork}"
    return f"Its code is commit {before['commit'][:12]}: check that out to resume it. {fork}"
