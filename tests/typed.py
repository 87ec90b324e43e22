"""A command as it is typed, in this process; or in one that ends where it would import what takes seconds."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from repro.cli.commands import main


def typed(capsys: Any, *words: object, code: int = 0) -> str:
    """All that a command says, what is asked for and then its errors; it has to end with this code."""
    capsys.readouterr()
    try:
        ended = main([*map(str, words)])
    except SystemExit as stopped:  # of the parser
        ended = int(stopped.code or 0)
    out, errors = capsys.readouterr()
    assert ended == code, out + errors
    return str(out + errors)


ROOT = Path(__file__).parent.parent
UNTIL_HEAVY = """
import os, runpy, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # on one processor nothing is left to other processes
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "lightning", "mlflow", "sacrebleu", "tokenizers"):
            print("heavy:", name, flush=True)
            sys.exit(9)
sys.meta_path.insert(0, Watch())
sys.argv = sys.argv[1:]
if sys.argv[0].endswith(".py"):
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def lines_until_heavy(*command: str) -> list[str]:
    """The lines of a script or a module with its arguments; it ends where it would import such a library."""
    program, *rest = command
    started = str(ROOT / program) if program.endswith(".py") else program
    with tempfile.TemporaryDirectory() as here:
        done = subprocess.run(
            [sys.executable, "-c", UNTIL_HEAVY, started, *rest],
            env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=here, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 9, done
    assert done.stdout.split("\n")[-2].startswith("heavy:")
    return (done.stderr + done.stdout).split("\n")[:-2]
