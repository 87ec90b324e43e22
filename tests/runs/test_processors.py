"""How many processors this process may use."""

from pathlib import Path

import pytest

from repro.runs.processors import granted


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"cpu.max": b"max 100000\n"}, None),
        ({"cpu.max": b"150000 100000\n"}, 2),
        ({"cpu.max": b"50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": b"-1\n", "cpu/cpu.cfs_period_us": b"100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": b"400000\n", "cpu/cpu.cfs_period_us": b"100000\n"}, 4),
        ({}, None),
    ],
)
def test_what_a_container_grants(tmp_path: Path, files: dict[str, bytes], wanted: int | None) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert granted(tmp_path) == wanted
