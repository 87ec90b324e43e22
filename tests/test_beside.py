"""`tox` runs commands beside each other, and fails if one of them does."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from beside import main


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_outputs_stand_one_after_the_other_and_one_failure_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"  # the second makes what the first waits for
    waits = f"import os, time\nwhile not os.path.exists({str(there)!r}): time.sleep(0.05)\nexit('last words')"
    assert main([python(waits), python(f"print('good', file=open({str(there)!r}, 'w'))\nprint('made')")]) == 1
    said = re.sub(r"\d+ s$", "N s", capsys.readouterr().out, flags=re.MULTILINE).split("\n")
    first = said.index("last words")
    assert said[first : first + 2] == ["last words", "exit status 1 after N s"]
    assert said[-3:] == ["made", "exit status 0 after N s", ""]
    assert main([python("")]) == 0
