"""What a run is made of, field by field, and what to say where an unfinished run was made of something else.

The same fields give the same id, so the same command resumes where it was stopped. If a field has changed, so has the
id. The command would then start over in another folder, with hours of work in the first: it refuses, and says why.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from repro.results.kinds import OF_CODE, equal_codes
from repro.results.provenance import Provenance
from repro.tracking.run_folder import RECORD, describe
from repro.training.checkpoint_files import checkpoints, step_of

SAME = ("table", "row", "seed", "scale", "corpus", "pair")  # the tags by which a person knows a run
SHORT = 32  # characters of two values that a sentence has room for: no hashes


class Origin(TypedDict):
    """What a run is made of."""

    decides: dict[str, Any]  # all that decides the result, the code as one hash
    commit: str | None


class Changed(ValueError):
    """An unfinished run has other settings, text or code than the same command has now."""


def origin(decides: Mapping[str, Any], stamp: Provenance) -> Origin:
    """What `run.json` keeps of what a run is made of."""
    return {"decides": dict(decides), "commit": stamp["commit"]}


def refuse_changed(runs: Path, run: str, tags: Mapping[str, object], decides: Mapping[str, Any]) -> None:
    """Raise `Changed` if `run` is about to begin while another of the same name is not finished."""
    if (runs / run / "run.json").exists():
        return  # it has begun before: with --fork beside the other one, or it is the other one
    for folder in sorted(path.parent for path in runs.glob("*/run.json")):
        saved = checkpoints(folder / "checkpoints")
        if not saved or (folder / RECORD).exists():
            continue
        found = describe(folder)
        if all(found["tags"].get(name) == str(tags[name]) for name in SAME):
            before: Origin = found["origin"]
            changed = ", ".join(differences(before["decides"], decides))
            of = f" It was made by commit {before['commit'][:12]}." if before["commit"] and "code" in changed else ""
            raise Changed(
                f"{tags['row']} seed {tags['seed']} is not finished: {folder} holds it up to step "
                f"{step_of(saved[-1]):,}, made with something else: {changed}.{of} Undo that to resume it, or start "
                "over beside it with --fork."
            )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The fields that differ, with both values where these are numbers or words and no hashes."""
    named = []
    for name in sorted(before.keys() | now.keys()):
        one, other = before.get(name), now.get(name)
        alike = equal_codes(now[name]) if name in OF_CODE and name in now else [other]
        if one in alike:
            continue
        is_short = len(f"{one}{other}") < SHORT
        named.append(f"{name} ({one} there, {other} now)" if is_short else name)
    return named
