"""Make requirements-locked.txt: what constraints.txt installs on a CPU, each file known by its hash.

    python docs/lock.py

pip resolves and installs nothing. The lock is of the platform that it is made on and says so. pip has to find torch's
wheel for CPUs, which stands on an index of torch's own.
"""

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements-locked.txt"
EXTRAS = "fast"
HEAD = """\
# Made by `python docs/lock.py` from constraints.txt and pyproject.toml; do not edit.
# What the package with its extras [{extras}] installs, each file by its SHA-256: Python {python}, {platform}, no GPU.
# pip install --require-hashes -r requirements-locked.txt
# torch {torch} stands on the index that pytorch.org names for CPUs; give it to pip beside your own.
"""


def resolved() -> list[dict[str, Any]]:
    """What pip would install, each as its report has it. Raises CalledProcessError where it finds no answer."""
    target = f"{ROOT}[{EXTRAS}]"
    ask = [
        "install",
        "--quiet",
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
        "-c",
        str(ROOT / "constraints.txt"),
    ]
    done = subprocess.run([sys.executable, "-m", "pip", *ask, target], stdout=subprocess.PIPE, check=True)
    return [one for one in json.loads(done.stdout)["install"] if "archive_info" in one["download_info"]]


def locked(found: list[dict[str, Any]]) -> str:
    """The text of the lock. Raises ValueError for a file that is no wheel or has no SHA-256, and for another torch."""
    pins = {}
    for one in found:
        name, version = one["metadata"]["name"], one["metadata"]["version"]
        info = one["download_info"]
        digest = info["archive_info"].get("hashes", {}).get("sha256", "")
        if not info["url"].endswith(".whl") or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(
                f"{name} {version}: expected a wheel with its SHA-256, got {info['url'].rpartition('/')[2]}."
            )
        pins[name.lower().replace("_", "-")] = (version, digest)
    if not (torch := pins["torch"][0]).endswith("+cpu"):
        raise ValueError(f"torch {torch}: expected the wheel for CPUs. Give pip torch's index for CPUs as well.")
    python = ".".join(map(str, sys.version_info[:2]))
    head = HEAD.format(extras=EXTRAS, python=python, platform=f"{platform.system()} {platform.machine()}", torch=torch)
    lines = [f"{name}=={version} --hash=sha256:{digest}" for name, (version, digest) in sorted(pins.items())]
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    LOCK.write_text(locked(resolved()), "utf-8")
