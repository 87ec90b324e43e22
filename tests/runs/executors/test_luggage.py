"""What a node is sent: all that a run needs, nothing else, and never a path of the sender's."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs.executors import luggage
from repro.runs.executors.luggage import SentText, key, stage_code, texts, unload
from repro.storage.atomic import DiskError

ROOT = Path(__file__).parents[3]


def test_code_is_the_package_and_what_lies_beside_the_script(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("t.py", "own.json", "notes.txt", "rows/__init__.py", "rows/a.py", "runs/x/run.json", ".git/hook.py"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("pass")
    stage_code(mine / "t.py", tmp_path / "staged")
    staged = {path.relative_to(tmp_path / "staged").as_posix() for path in (tmp_path / "staged").rglob("*.*")}
    beside = {name for name in staged if name.startswith("experiments/")}
    assert beside == {f"experiments/{name}" for name in ("t.py", "own.json", "rows/__init__.py", "rows/a.py")}
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "repro").rglob("*.py")}
    assert package <= staged
    assert not any("__pycache__" in name or name.startswith(("runs", "cache", "results")) for name in staged)


def test_staged_code_is_the_same_code(tmp_path: Path) -> None:
    stage_code(ROOT / "experiments" / "table3_A.py", tmp_path)
    line = "from repro.results.provenance import fingerprint; print(fingerprint())"
    told = {
        subprocess.run(
            [sys.executable, "-c", line], cwd=place, env=os.environ | {"PYTHONPATH": str(place)}, check=True,
            capture_output=True,
        ).stdout
        for place in (ROOT, tmp_path)
    }  # fmt: skip
    assert len(told) == 1


def test_a_folder_of_other_things_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(luggage, "CODE_AT_MOST", 1000)
    with pytest.raises(ValueError, match="Put the experiment's files into a folder of their own"):
        stage_code(ROOT / "experiments" / "table3_A.py", tmp_path / "staged")
    assert not (tmp_path / "staged").exists()


def written(folder: Path, **files: bytes) -> SentText:
    found = {}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        found[f"cache/{name}.ids"] = folder / name
    return SentText(found)


def test_a_text_comes_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(luggage, "BLOCK", 3)
    text = written(tmp_path / "here", one=b"abcdefgh", two=b"", three=b"xyz")
    node = tmp_path / "node"
    files = text.described()
    unload(node, files, {name: text.blocks(name) for name in files})
    assert (node / "cache" / "one.ids").read_bytes() == b"abcdefgh"
    unload(node, files, {})  # it is there: nothing is read
    assert key(files) == key(text.described())
    assert key(files) != key({name: file for name, file in files.items() if "two" not in name})


def test_a_text_that_is_half_there_is_made_whole(tmp_path: Path) -> None:
    text = written(tmp_path / "here", one=b"abc", two=b"def")
    files, node = text.described(), tmp_path / "node"
    (node / "cache").mkdir(parents=True)
    (node / "cache" / "one.ids").write_bytes(b"abX")
    (node / "cache" / "two.ids").write_bytes(b"def")
    unload(node, files, {"cache/one.ids": [b"a", b"bc"]})
    assert (node / "cache" / "one.ids").read_bytes() == b"abc"


def test_damage_and_want_of_room_are_named(tmp_path: Path) -> None:
    text = written(tmp_path / "here", one=b"abc")
    files = text.described()
    with pytest.raises(ValueError, match=r"one\.ids was damaged in transit"):
        unload(tmp_path / "node", files, {"cache/one.ids": [b"abd"]})
    assert not list((tmp_path / "node").rglob("*.ids"))
    with pytest.raises(DiskError, match="bytes of text are needed there"):
        unload(tmp_path / "node", {"cache/one.ids": {"size": 2**60, "sha256": ""}}, {})


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "cache/../../x", "cache//x", "cache/.x", "cache/a\nb", "a/" * 9 + "a"]
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    file: luggage.Described = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    with pytest.raises(ValueError, match="not a file of a text"):
        unload(tmp_path / "node", {name: file}, {name: [b"x"]})
    assert not (tmp_path / "node").exists()


def test_the_files_of_a_text_of_ones_own(tmp_path: Path) -> None:
    cache, data = tmp_path / "cache", tmp_path / "data"
    for path in ("cache/t-en-de/encoded/card/card.json", "cache/t-en-de/tokenizer/tokenizer.json",
                 "cache/t-en-de/.tokenizer.lock", "cache/other/x.json", "data/train.en", "data/train.de", "data/dev.en",
                 "data/dev.de", "data/diary.txt", "data/manifest.json"):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")

    def side(name: str) -> Any:
        return SimpleNamespace(source=data / f"{name}.en", target=data / f"{name}.de")

    corpus: Any = SimpleNamespace(
        train=(side("train"),), dev=side("dev"), test=side("dev"), subset=None, vocabulary=None
    )
    prepared: Any = SimpleNamespace(card=cache / "t-en-de" / "encoded" / "card")
    names = {*texts([(corpus, prepared)], cache, data).files}
    ours = {f"data/{name}" for name in ("train.en", "train.de", "dev.en", "dev.de", "manifest.json")}
    assert names == {"cache/t-en-de/encoded/card/card.json", "cache/t-en-de/tokenizer/tokenizer.json"} | ours
    with pytest.raises(ValueError, match="expected a file of the text below"):
        texts([(corpus, prepared)], cache, None)
