"""What unpacks a report's values at once does it as zlib does, and refuses what is damaged."""

import base64
import gzip
import random
import zlib
from typing import Any

import pytest
from markupsafe import Markup

from repro.web.report import report_html
from repro.web.section import Section

UNPACKED = "(packed) => btoa(Array.from(report.unpacked(packed), (one) => String.fromCharCode(one)).join(''))"
REFUSED = "(packed) => { try { return report.unpacked(packed).length; } catch (error) { return error.message; } }"
WORDS = " ".join(random.Random(7).choices(("the", "cat", "Über-long", "straw", "1"), k=9_000)).encode()
NOISE = random.Random(11).randbytes(70_000)  # more than a stored block holds


@pytest.fixture(scope="module")
def page(opened_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("packed") / "page.html"
    sections = [Section(key="one", title="One", body=Markup())]
    file.write_text(report_html(sections, title="Packed", origin="a test"), "utf-8")
    return opened_once(file)


def packed(data: bytes, level: int, strategy: int) -> str:
    """As gzip in base64; the strategy chooses blocks: Z_FIXED those of fixed codes, level 0 those as they are."""
    made = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    return base64.b64encode(made.compress(data) + made.flush()).decode()


def test_bytes_come_out_as_they_went_in(page: Any) -> None:
    for data in (b"", b"a", b"a" * 100_000, bytes(range(256)), NOISE, WORDS, WORDS + NOISE[:999] + WORDS):
        for level, strategy in ((0, 0), (1, 0), (9, 0), (9, zlib.Z_FIXED), (9, zlib.Z_HUFFMAN_ONLY), (9, zlib.Z_RLE)):
            found = base64.b64decode(page.evaluate(UNPACKED, packed(data, level, strategy)))
            assert found == data, (data[:9], level, strategy)


def test_what_is_damaged_is_refused_by_name(page: Any) -> None:
    whole = gzip.compress(WORDS, mtime=0)

    def said(data: bytes) -> str:
        return str(page.evaluate(REFUSED, base64.b64encode(data).decode()))

    assert said(b"PK\3\4" + whole) == "Expected bytes packed as gzip, got something else."
    assert said(b"") == "Expected bytes packed as gzip, got something else."
    assert said(whole[:-4] + b"\xff" * 4) == "Expected bytes packed as gzip, got an impossible size."
    assert said(whole[:-8] + bytes(4) + whole[-4:]) == "Expected bytes packed as gzip, got a wrong size or checksum."
    for place in range(10, len(whole) - 8, len(whole) // 50):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :]):
            assert said(damaged).startswith("Expected bytes packed as gzip, got "), place
