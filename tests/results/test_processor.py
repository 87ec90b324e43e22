"""What Linux says of processors of two kinds, and what is told where it says nothing."""

from pathlib import Path

import pytest

from repro.results.processor import Processor, processor

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 167
model name\t: A Processor @ 2.60GHz
stepping\t: 1
flags\t\t: fpu sse sse4_2 avx avx2 fma f16c avx512_vnni erms amx_tile

processor\t: 1
model\t\t: 168
"""
ARM = """processor\t: 0
Features\t: fp asimd sve bf16 i8mm crc32
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
"""


@pytest.mark.parametrize(
    ("said", "name", "model", "vectors"),
    [
        (
            X86, "A Processor @ 2.60GHz", "GenuineIntel, family 6, model 167, stepping 1",
            ("amx_tile", "avx", "avx2", "avx512_vnni", "f16c", "fma", "sse4_2"),
        ),
        (ARM, "aarch64", "implementer 0x41, variant 0x1, part 0xd40", ("asimd", "bf16", "i8mm", "sve")),
        ("", "aarch64", None, ()),
    ],
)  # fmt: skip
def test_the_first_processor_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, name: str, model: str | None, vectors: tuple[str, ...]
) -> None:
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    (tmp_path / "cpuinfo").write_text(said)
    assert processor(tmp_path / "cpuinfo") == Processor(name, model, vectors)


def test_a_system_that_tells_nothing_has_a_name(tmp_path: Path) -> None:
    found = processor(tmp_path / "none")
    assert (found.model, found.vectors) == (None, ())
    assert found.name
