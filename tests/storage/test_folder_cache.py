"""A cached folder is made once, whole or absent, and made again where it is damaged."""

import os
import threading
from pathlib import Path

import pytest

from repro.storage.folder_cache import made_new, made_once, manifest_hash, verified


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def test_a_folder_is_made_once_and_again_when_damaged(tmp_path: Path) -> None:
    calls = []

    def make(folder: Path) -> dict[str, int]:
        calls.append(written(folder, "a", b"content"))
        return {"answer": 42}

    folder = tmp_path / "made"
    for _ in range(2):
        assert made_once(folder, make) == {"answer": 42}
    assert len(calls) == 1

    sha256 = manifest_hash(folder)
    (folder / "a").write_bytes(b"c0ntent")
    assert manifest_hash(folder) == sha256  # it reads no other file
    with pytest.raises(ValueError, match=r"made/a is damaged: expected SHA-256 .* got .*Delete the folder"):
        verified(folder)
    made_once(folder, make)
    assert len(calls) == 2

    (folder / "a").unlink()
    made_once(folder, make)
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"42", b"43"))
    for read in (verified, manifest_hash):
        with pytest.raises(ValueError, match=r"manifest\.json: edited by hand or damaged.*Delete the folder"):
            read(folder)
    assert made_once(folder, make) == {"answer": 42}
    manifest.unlink()
    made_once(folder, make)
    assert len(calls) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("damaged", [False, True], ids=["absent", "damaged"])
def test_of_two_that_make_the_same_folder_both_succeed(tmp_path: Path, damaged: bool) -> None:
    folder = tmp_path / "made"
    if damaged:
        made_once(folder, lambda empty: {"length": len(str(written(empty, "a", b"old")))})
        (folder / "a").write_bytes(b"odd")
    both_are_done = threading.Barrier(2, timeout=60)
    results = []

    def make(empty: Path) -> dict[str, str]:
        written(empty, "a", b"content")
        both_are_done.wait()
        return {"made by": empty.name}

    threads = [threading.Thread(target=lambda: results.append(made_once(folder, make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert damaged or results[0] == results[1]  # the second has taken what the first made
    assert (folder / "a").read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    def killed(empty: Path) -> dict[str, int]:
        written(empty, "a", b"half")
        os._exit(9)

    made = tmp_path / "made [1]"
    if not (child := os.fork()):
        made_once(made, killed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    [left] = tmp_path.iterdir()
    (living := tmp_path / left.name.replace(f".{child}.", f".{os.getpid()}.")).mkdir()
    made_once(made, lambda empty: {"length": len(str(written(empty, "a", b"whole")))})
    assert {path.name for path in tmp_path.iterdir()} == {made.name, living.name}


def test_a_new_folder_is_not_the_one_that_a_person_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be taken away from under the shell."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="Expected a new or empty folder"):
        made_new(Path(), lambda empty: None)
    assert Path.cwd() == tmp_path
