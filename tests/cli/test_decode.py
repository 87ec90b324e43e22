"""python -m repro translate, score and export: what a finished run is good for, by hand."""

import errno
import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from figures.conftest import record
from text_folders import put
from typed import lines_until_heavy, typed

import repro
from repro.cli import decode
from repro.cli.commands import main
from repro.corpora.grammar.generate import sentences
from repro.data.shards import Encoded
from repro.data.tokenizer import Tokenizer, given_tokenizer, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.decoding import ctranslate
from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.model.config import Hyper
from repro.model.transformer import Transformer
from repro.results.record import Record
from repro.training import checkpoint

Said = pytest.CaptureFixture[str]
SaidBytes = pytest.CaptureFixture[bytes]
Patch = pytest.MonkeyPatch

LINES = ["the cat sees a dog", "a\u2028b", "the old dog sleeps", "sees"]


class Run(SimpleNamespace):
    folder: Path
    tokenizer: Tokenizer
    model: Transformer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The folder of a finished run, with random weights."""
    return finished(tmp_path_factory.mktemp("run"), train_tokenizer(LINES * 3, Subwords("bpe", 280)))


def finished(root: Path, tokenizer: Tokenizer, made: Record | None = None) -> Run:
    made = made or record("base", 1, tokenizer={"sha256": tokenizer.sha256, "size": tokenizer.size})
    torch.manual_seed(0)
    model = Transformer(Hyper(**made.hyper), tokenizer.size).eval()
    state = {"state_dict": {f"model.{name}": tensor for name, tensor in model.state_dict().items()}}
    folder = root / "runs" / made.run
    checkpoint.save(checkpoint.path_of(folder / "checkpoints", 20), state, made.run)
    made.save(folder / "record.json")
    tokenizer.save(folder / "tokenizer.json")
    return Run(folder=folder, tokenizer=tokenizer, model=model)


def asked(run: Run, capsys: Any, *words: object, code: int = 0) -> str:
    command, *more = words
    return typed(capsys, command, run.folder, *more, code=code)


def test_given_pieces_are_kept_in_the_folder_of_the_run(tmp_path: Path, capsys: Said) -> None:
    run = finished(tmp_path, given_tokenizer(["the", "c@@", "at", "sees"]))
    text = put(tmp_path / "news.en", "the c@@ at sees\n")
    assert "1 pairs, 5 target tokens" in asked(run, capsys, "score", text, text)


@pytest.mark.parametrize("word", ["latest", "0000"])
def test_a_run_is_opened_by_a_word_and_named(run: Run, tmp_path: Path, capsys: Said, word: str) -> None:
    text = put(tmp_path / "news.en", "sees\n")
    assert main(["translate", word, str(text), f"--runs-dir={run.folder.parent}"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert said.err.startswith(f"{run.folder}: base, base, seed 1, scale laptop, en-de\n")


def test_words_that_generated_text_never_had_are_said_once(tmp_path: Path, capsys: Said) -> None:
    generated = {"name": "grammar", "sha256": "ab" * 32, "n_train": 50, "n_dev": 2, "n_test": 3, "dropped": {}}
    tokenizer = train_tokenizer(LINES * 3, Subwords("bpe", 280))
    kept = {"sha256": tokenizer.sha256, "size": tokenizer.size}
    run = finished(tmp_path, tokenizer, record("base", 1, corpus=generated, tokenizer=kept))
    held_out, of_train = (one[0] for one in (next(sentences(0)), next(islice(sentences(0), 5, None))))
    text = put(tmp_path / "news.en", f"{of_train}\nAttention is all you need.\n")
    said = asked(run, capsys, "translate", text)
    assert said.count("never stood in the generated text") == 1
    assert "such as 'attention'" in said
    assert held_out in said
    assert "never stood" not in asked(run, capsys, "translate", put(text, f"{of_train.upper()}\n\n"))


def test_the_run_is_named_before_what_takes_seconds(run: Run) -> None:
    first = f"{run.folder}: base, base, seed 1, scale laptop, en-de"
    text = str(run.folder / "record.json")  # some file
    for command in (["translate", str(run.folder)], ["score", str(run.folder), text, text]):
        assert lines_until_heavy("repro", *command)[0] == first


def test_a_run_is_used_without_what_only_training_takes(run: Run, tmp_path: Path) -> None:
    """Lightning and torch's compiler take longer to import than a page of text to translate."""
    (tmp_path / "news").write_bytes(b"the cat sees a dog\n")
    code = f"""
import sys
import repro
from repro.cli.commands import main
assert main(["translate", {str(run.folder)!r}, "news"]) == main(["score", {str(run.folder)!r}, "news", "news"]) == 0
repro.load({str(run.folder)!r}).attention("sees", "the old dog")
print({{"lightning", "torch._dynamo", "pandas", "mlflow", "matplotlib", "scipy"}} & {{*sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_run_without_its_own_tokenizer_is_not_opened(run: Run, tmp_path: Path, capsys: Said) -> None:
    copy = shutil.copytree(run.folder, tmp_path / "runs" / run.folder.name)
    words = ("translate", copy, put(tmp_path / "news.en", "sees\n"))
    (copy / "tokenizer.json").unlink()
    assert "which is not there" in typed(capsys, *words, code=2)
    put(copy / "tokenizer.json", "damaged")
    assert "which is damaged" in typed(capsys, *words, code=2)


def test_each_line_is_translated_and_blank_lines_stay(run: Run, tmp_path: Path, capsysbinary: Any) -> None:
    blank = ["  ", "\u00a0", "\u3000\u2009", "\u2028", "\t\u202f\r"]  # Unicode decides what is empty
    text = put(tmp_path / "news.en", "\n".join([LINES[0], "", *LINES[1:], *blank]) + "\n")
    assert main(["translate", str(run.folder), str(text), "--beam=2", "--alpha=1"]) == 0
    ids = translate(run.model, Encoded(*run.tokenizer.encode(LINES)), Search(2, 1.0))
    first, *rest = map(run.tokenizer.decode, ids)
    expected = "".join(f"{line}\n" for line in [first, "", *rest, *[""] * len(blank)])
    assert capsysbinary.readouterr().out.decode() == expected


def test_a_line_that_ctranslate2_has_no_place_for_is_named_before_anything_is_translated(
    run: Run, tmp_path: Path, capsys: Said
) -> None:
    long = " ".join(["\u4e2d" * 50] * 41)  # of a character that is no token: a byte each
    text = put(tmp_path / "news.en", f"{LINES[0]}\n\n{long}\n")
    named, *_, said = asked(run, capsys, "translate", text, "--backend=ctranslate2", code=2).splitlines()
    assert named.startswith(f"{run.folder}: ")  # which is an error's line: nothing was translated
    expected = "at most 4,046 tokens in a line, for which the model has places, got 6,192 in line 3. Split that line."
    assert said == f"error: expected {expected}"


def test_the_score_is_that_of_the_library(run: Run, tmp_path: Path, capsys: Said) -> None:
    """Where it is computed by hand: `test_library.py`."""
    text = put(tmp_path / "news", "\n".join(LINES))
    found = repro.load(run.folder).score(LINES, LINES)
    expected = f"4 pairs, {found.n_tokens} target tokens: nll {found.nll:.6f} nats a token, ppl {found.ppl:.4f}\n"
    assert asked(run, capsys, "score", text, text).startswith(expected)


def test_an_exported_model_is_whole_and_says_whose_it_is(run: Run, tmp_path: Path, capsys: Said) -> None:
    pytest.importorskip("ctranslate2")
    folder = tmp_path / "exported"
    asked(run, capsys, "export", "--format=ctranslate2", folder)
    assert names(folder) >= WHOLE
    assert run.folder.name.encode() in (folder / "run.json").read_bytes()
    text: Any = Encoded(*Tokenizer.load(folder / "tokenizer.json").encode(LINES))
    assert len(ctranslate.translate_ctranslate2(ctranslate.load(folder), text)) == len(LINES)


def written(model: Transformer, folder: Path) -> None:
    """Stands where CTranslate2's own format is written, which has tests of its own."""
    for name in ("config.json", "model.bin"):
        (folder / name).write_bytes(name.encode() + model.embedding.weight.detach().numpy().tobytes()[:40])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


WHOLE = {"model.bin", "config.json", "tokenizer.json", "run.json", "record.json", "README.md", "manifest.json"}


def test_an_export_is_whole_or_absent_and_named_where_damaged(
    run: Run, tmp_path: Path, monkeypatch: Patch, capsys: Said
) -> None:
    folder, made = tmp_path / "to" / "exported", []

    def export(model: Transformer, folder: Path) -> None:
        written(model, folder)
        made.append(folder)
        if len(made) == 1:
            raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(ctranslate, "export", export)
    command = ("export", "--format=ctranslate2", folder)
    assert "no room" in asked(run, capsys, *command, code=2)
    assert names(folder.parent) == set()
    for n, spoil in enumerate(["", "model.bin", "manifest.json"], start=2):
        if spoil:
            put(folder / spoil, "damaged, and longer")
            said = asked(run, capsys, *command, code=2)
            assert str(folder / spoil) in said
            assert "Delete the folder" in said
            assert (folder / spoil).read_text() == "damaged, and longer"  # nothing that lies there is taken away
            shutil.rmtree(folder)
        for _ in range(2):
            asked(run, capsys, *command)
            assert len(made) == n
        assert names(folder) == WHOLE
        assert Tokenizer.load(folder / "tokenizer.json").sha256 == run.tokenizer.sha256
    assert names(folder.parent) == {"exported"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "{good}", "{short}"), "has 4 lines"),
        (("score", "{good}", "{pipe}"), "pipe: expected a file, as it is read more than once, got a pipe"),
        (("translate", "{bad}"), "line 2 is not UTF-8"),
        (("export", "--format=safetensors", "{full}"), "holds something else than run"),
    ],
)
def test_bad_input_is_named_before_the_model_is_built(
    run: Run, tmp_path: Path, monkeypatch: Patch, capsys: Said, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(decode, "open_run", lambda *_: pytest.fail("it was built"))
    contents = {"good": "\n".join(LINES), "short": "one\n", "bad": b"one\n\xff\nthree\nfour"}
    places = {name: put(tmp_path / name, content) for name, content in contents.items()}
    places["full"] = put(tmp_path / "full" / "mine", "").parent
    os.mkfifo(pipe := tmp_path / "pipe")
    places["pipe"] = pipe
    assert message in asked(run, capsys, *(word.format(**places) for word in arguments), code=2)


def test_what_is_no_run_and_what_is_no_file_is_named(run: Run, tmp_path: Path, capsys: Said) -> None:
    assert "expected the folder of a finished run" in typed(capsys, "translate", tmp_path, code=2)
    assert "No such file or directory: 'the dog'" in asked(run, capsys, "translate", "the dog", code=2)
