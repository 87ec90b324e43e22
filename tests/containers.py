"""Programs that run as in another container of this machine's name: `docker run --network host`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repro.storage import atomic

APART = ("unshare", "--pid", "--fork", "--mount-proc")
NUMBERED = "import os, sys; os.getpid = lambda: int(sys.argv[1])\n"  # whatever number it has, it may be any


def in_a_container(code: str, *arguments: object) -> "subprocess.Popen[str]":
    """Run a program that numbers processes anew, and has itself the number of one that has ended outside."""
    if not shutil.which(APART[0]) or subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to number processes anew")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    command = [*APART, sys.executable, "-c", NUMBERED + code, str(ended.pid), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(Path(atomic.__file__).parents[2])}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True
    )
