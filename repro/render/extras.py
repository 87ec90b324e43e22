"""How to install the optional extras that `pyproject.toml` names."""

import os
import shlex
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]  # the clone, if there is one; if installed, the folder of all packages
PROJECT = "attention-repro"


def install(extra: str) -> str:
    """The command that installs `extra`, with the tested versions if there is a clone that lists them."""
    if not (CLONE / "constraints.txt").exists():
        return f"pip install {shlex.quote(f'{PROJECT}[{extra}]')}"  # it is installed already, so this adds the extra
    clone = Path(os.path.relpath(CLONE))
    return f"pip install -c {shlex.quote(str(clone / 'constraints.txt'))} -e {shlex.quote(f'{clone}[{extra}]')}"
