"""The lock is that of constraints.txt, whole and with a hash for each file; the image installs nothing else."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmark_files import opened

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"([a-z0-9._-]+)==([0-9][\w.]*)(\+cpu)? --hash=sha256:[0-9a-f]{64}")


@pytest.fixture(scope="module")
def lock() -> Any:
    return opened("lock", "docs")


def lines() -> list[str]:
    text = (ROOT / "requirements-locked.txt").read_text("utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pinned() -> dict[str, str]:
    found = [PIN.fullmatch(line) for line in lines()]
    assert all(found), [line for line, match in zip(lines(), found, strict=True) if not match]
    return {match[1]: match[2] for match in found if match}


def test_each_file_has_its_hash_and_the_version_of_the_constraints() -> None:
    constraints = re.findall(r"^([^#\s=]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    exact = {name.lower().replace("_", "-"): version for name, version in constraints}
    assert {name: version for name, version in pinned().items() if exact.get(name) != version} == {}


def test_whatever_the_package_needs_is_locked() -> None:
    # from what is installed here: each requirement, and what that requires, on this platform
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    def needs(name: str, extras: set[str]) -> list[Requirement]:
        try:
            found = [Requirement(one) for one in requires(name) or []]
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")
        environments = [{"extra": extra} for extra in extras or {""}]
        return [one for one in found if not one.marker or any(one.marker.evaluate(each) for each in environments)]

    waiting, seen = [Requirement("attention-repro[fast]")], set()
    while waiting:
        one = waiting.pop()
        key = (one.name, frozenset(one.extras))
        if key not in seen:
            seen.add(key)
            waiting += needs(one.name, one.extras)
    names = {re.sub(r"[-_.]+", "-", name).lower() for name, _ in seen} - {"attention-repro"}
    assert len(names) > 100
    assert names - {re.sub(r"[-_.]+", "-", name) for name in pinned()} == set()


def found(name: str, version: str, file: str, digest: str = "0" * 64) -> dict[str, Any]:
    info = {"url": f"https://example.org/{file}", "archive_info": {"hashes": {"sha256": digest}}}
    return {"metadata": {"name": name, "version": version}, "download_info": info}


TORCH = found("torch", "2.13.0+cpu", "torch.whl")


def test_the_lock_is_in_order_and_says_of_which_platform_it_is(lock: Any) -> None:
    text = lock.locked([TORCH, found("Py_Thing", "3", "py_thing-3.whl", "1" * 64)])
    assert text.splitlines()[-2:] == [
        f"py-thing==3 --hash=sha256:{'1' * 64}",
        f"torch==2.13.0+cpu --hash=sha256:{'0' * 64}",
    ]
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in text


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (found("a", "1", "a-1.tar.gz"), "a 1: expected a wheel with its SHA-256, got a-1.tar.gz"),
        (found("a", "1", "a-1.whl", ""), "a 1: expected a wheel with its SHA-256"),
        (found("torch", "2.13.0", "torch.whl"), "torch 2.13.0: expected the wheel for CPUs"),
    ],
)
def test_what_is_no_lock_for_cpus_is_refused(lock: Any, one: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        lock.locked([TORCH, one])


def test_the_image_has_a_base_of_one_version_and_installs_by_hashes() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", image, re.MULTILINE)
    assert [
        base for base in bases if not re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    ] == []
    [python] = re.findall(r"Python (\d+\.\d+)", (ROOT / "requirements-locked.txt").read_text("utf-8"))
    assert {base.split(":")[1].rpartition(".")[0] for base in bases} == {python}
    installs = re.findall(r"pip install ((?:[^\n]|\\\n)*)", image.replace("\\\n", " "))
    assert [one for one in installs if "--require-hashes" not in one and "--no-deps" not in one] == []
    assert len(installs) == 2
