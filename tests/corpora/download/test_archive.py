"""Nothing of an archive decides where anything is written; what is wrong is refused, and the words say what."""

import gzip
import hashlib
import io
import tarfile
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from repro.corpora.download.archive import read_sgm, unpack
from repro.corpora.download.sources import Member

EN, DE = b"one\ntwo\nthree\n", b"eins\nzwei\ndrei\n"
WANTED = {
    "x.en": Member(language="en", name="training/x.de-en.en", max_bytes=1_000),
    "x.de": Member(language="de", name="training/x.de-en.de", max_bytes=1_000),
}


def entry(name: str, content: bytes = b"", **changed: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in changed.items():
        setattr(info, field, value)
    return info, content


GOOD = [
    entry("training", type=tarfile.DIRTYPE),
    entry("training/x.cs-en.en", b"not wanted"),
    entry("training/x.de-en.de", DE),
    entry("training/x.de-en.en", EN),
]


def tar_bytes(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return file.getvalue()


def packed(folder: Path, entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> Path:
    path = folder / "x.tgz"
    path.write_bytes(gzip.compress(tar_bytes(entries), mtime=0))
    return path


def refused(path: Path, message: str, wanted: dict[str, Member] | None = None) -> None:
    """Unpacking is refused in these words, naming the archive, and leaves nothing beside what was whole."""
    out = path.parent / "out" / "inside"
    with pytest.raises(ValueError, match=message) as error:
        unpack(path, WANTED if wanted is None else wanted, out)
    assert str(path) in str(error.value)
    assert "get it again" in str(error.value).lower()
    assert {file.name for file in out.glob("*")} <= {"x.en", "x.de"}
    assert {file.name for file in path.parent.iterdir()} <= {path.name, "out"}
    assert {file.name for file in out.parent.glob("*")} <= {"inside"}


# What is wanted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_gzip", [True, False])
def test_the_wanted_files_come_under_our_names(tmp_path: Path, is_gzip: bool) -> None:
    content = tar_bytes(GOOD)
    (tmp_path / "x.tgz").write_bytes(gzip.compress(content) if is_gzip else content)
    done = unpack(tmp_path / "x.tgz", WANTED, tmp_path / "out")
    assert done == {
        "x.en": {"bytes": 14, "sha256": hashlib.sha256(EN).hexdigest(), "n_lines": 3},
        "x.de": {"bytes": 15, "sha256": hashlib.sha256(DE).hexdigest(), "n_lines": 3},
    }
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"x.en": EN, "x.de": DE}


def test_a_last_line_without_end_counts(tmp_path: Path) -> None:
    wanted = {"x.en": WANTED["x.en"]}
    for content, n_lines in ((b"a\nb", 2), (b"a\nb\n", 2), (b"", 0), (b"\n", 1), (b"a\rb\x85\x0cc", 1)):
        path = packed(tmp_path, [entry("training/x.de-en.en", content)])
        assert unpack(path, wanted, tmp_path / "out")["x.en"]["n_lines"] == n_lines


def test_gzip_within_tar_is_plain_text_outside(tmp_path: Path) -> None:
    members = gzip.compress(EN[:5]) + gzip.compress(b"") + gzip.compress(EN[5:])  # several are legal
    path = tmp_path / "giga.tar"
    path.write_bytes(tar_bytes([entry("giga.en.gz", members)]))
    wanted = {"giga.en": Member(language="en", name="giga.en.gz", max_bytes=len(EN))}
    assert unpack(path, wanted, tmp_path / "out")["giga.en"]["sha256"] == hashlib.sha256(EN).hexdigest()


# What is refused -------------------------------------------------------------------------------------------

EVIL = [
    entry("../evil", b"evil"),
    entry("/tmp/evil", b"evil"),
    entry("training/../../evil", b"evil"),
    entry("link", type=tarfile.SYMTYPE, linkname="/etc"),
    entry("link/passwd", b"evil"),
    entry("hard", type=tarfile.LNKTYPE, linkname="../evil"),
    entry("device", type=tarfile.CHRTYPE, devmajor=1, devminor=8),
    entry("training/x.de-en.en ", b"evil"),
    entry("Training/x.de-en.en", b"evil"),
    entry("training//x.de-en.en", b"evil"),
    entry("long" * 200, b"evil"),
]


def test_members_that_nobody_wants_do_nothing(tmp_path: Path) -> None:
    path = packed(tmp_path, [*EVIL, *GOOD, *EVIL])
    unpack(path, WANTED, tmp_path / "out" / "inside")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["out/inside/x.de", "out/inside/x.en", "x.tgz"]
    assert (tmp_path / "out" / "inside" / "x.en").read_bytes() == EN


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_wanted_name_must_be_a_regular_file(tmp_path: Path, kind: bytes) -> None:
    strange = entry("training/x.de-en.en", type=kind, linkname="training/x.de-en.de")
    refused(packed(tmp_path, [*GOOD[:-1], strange]), r"'training/x\.de-en\.en' is no file, expected a regular file")


def test_a_missing_member_is_named(tmp_path: Path) -> None:
    refused(packed(tmp_path, GOOD[:-1]), r"lacks 'training/x\.de-en\.en'; expected training/x\.de-en\.en, training/x\.")


def test_a_member_over_its_limit_is_refused(tmp_path: Path) -> None:
    whole, over = ([*GOOD[:-1], entry("training/x.de-en.en", b"a" * size)] for size in (1_000, 1_001))
    unpack(packed(tmp_path, whole), WANTED, tmp_path / "out" / "inside")
    refused(packed(tmp_path, over), r"has more than 1,000 bytes, the limit of this file.*raise max_bytes")


def nested(content: bytes, folder: Path, max_bytes: int = 1_000) -> tuple[Path, dict[str, Member]]:
    wanted = {"x.en": Member(language="en", name="x.en.gz", max_bytes=max_bytes)}
    return packed(folder, [entry("x.en.gz", content)]), wanted


def test_a_bomb_within_an_archive_is_stopped_at_its_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(40_000_000))  # 1 : 1000
    tracemalloc.start()
    path, wanted = nested(bomb, tmp_path, max_bytes=200_000)
    refused(path, "has more than 200,000 bytes", wanted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    whole = packed(tmp_path, GOOD).read_bytes()
    for content in (b"", whole[:10], whole[: len(whole) // 2], tar_bytes(GOOD)[: 512 * 6 + 4]):
        (tmp_path / "x.tgz").write_bytes(content)
        refused(tmp_path / "x.tgz", "is not a whole archive|lacks")


def test_a_damaged_gzip_within_an_archive_is_refused(tmp_path: Path) -> None:
    for damaged in (gzip.compress(EN)[:-1], b"no gzip", gzip.compress(EN)[:-8] + bytes(8)):
        path, wanted = nested(damaged, tmp_path)
        refused(path, "is not a whole archive", wanted)


# Test sets -------------------------------------------------------------------------------------------------

SGM = """<srcset setid="newstest2014" srclang="any">
<DOC origlang="en" sysid="src" docid="a.1">
<hl>
<seg id="1"> Fish & chips &amp; S&P </seg>
</hl>
<p>
<SEG ID='2'>2 < 3
and\t 5 >\r
4&#46; &quot;Yes&#x21;&quot; &amp;lt;</SEG>
</p>
</DOC>
<doc docid="b.2" genre="news">
<p><seg id=1>Caf\u00e9\u00a0\u2028 &nbsp;&euro;&#0;&bomb;</seg></p>
</doc>
</srcset>
"""


def test_sgm_as_it_stands_in_the_archives() -> None:
    assert read_sgm(SGM.encode(), "x.sgm") == [
        "Fish & chips & S&P",
        '2 < 3 and 5 > 4. "Yes!" &lt;',
        "Caf\u00e9\u00a0\u2028 \u00a0\u20ac\ufffd&bomb;",
    ]


def seg(number: int, text: str) -> str:
    return f'<seg id="{number}">{text}</seg>\n'


def test_bad_sgm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^x\.sgm has no segment; expected sentences, .* get it again"):
        read_sgm(b"<seg id='1'>a", "x.sgm")
    with pytest.raises(ValueError, match=r"x\.sgm, line 2 \(byte 22\) is not UTF-8"):
        read_sgm(f"{seg(1, 'a')}<x\xe9>".encode("latin-1"), "x.sgm")
