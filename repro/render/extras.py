"""How to install what is optional: the extras that `pyproject.toml` names."""

import os
import shlex
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]  # where there is one: of an installed package, the folder of all packages
PROJECT = "attention-repro"


def install(extra: str) -> str:
    """What to type so that `extra` is there: with the versions that were tested, where a clone says which these are."""
    if not (CLONE / "constraints.txt").exists():
        return f"pip install {shlex.quote(f'{PROJECT}[{extra}]')}"  # it is installed already, so this adds the extra
    clone = Path(os.path.relpath(CLONE))
    return f"pip install -c {shlex.quote(str(clone / 'constraints.txt'))} -e {shlex.quote(f'{clone}[{extra}]')}"
