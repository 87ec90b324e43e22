"""The notebook of the first steps runs as it is, at smoke scale, in an empty folder."""

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parent.parent / "docs" / "first_steps.ipynb"


def cells() -> list[str]:
    """Its code, cell by cell."""
    return [
        "".join(one["source"]) for one in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if one["cell_type"] == "code"
    ]


def test_it_is_kept_without_what_came_out() -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["cells"][0]["cell_type"]) == (4, "markdown")
    assert [one for one in notebook["cells"] if one.get("outputs") or one.get("execution_count")] == []


def test_it_runs_as_it_is(tmp_path: Path) -> None:
    # cell by cell as a kernel would, without one
    code = "\n".join([*cells(), "print(len(run.translate([source])), attention)"])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2].startswith("1 <attention from ")
