"""python -m repro.decoding: what a finished run is good for, by hand."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from figures.conftest import record

from repro.data.pieces import Pieces
from repro.data.store import Encoded
from repro.data.tokenizer import Tokenizer, train_tokenizer
from repro.decoding import ctranslate
from repro.decoding.__main__ import main
from repro.decoding.translate import translate
from repro.hyper import Hyper
from repro.model.transformer import Transformer
from repro.training import checkpoint

LINES = ["the cat sees a dog", "a\u2028b", "the old dog sleeps", "sees"]


class Run(SimpleNamespace):
    folder: Path
    cache: Path
    tokenizer: Tokenizer
    model: Transformer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The folder of a finished run, with random weights."""
    root = tmp_path_factory.mktemp("run")
    tokenizer = train_tokenizer(LINES * 3, Pieces("bpe", 280))
    tokenizer.save(root / "cache/text/tokenizer/tokenizer.json")
    made = record("base", 1, tokenizer={"sha256": tokenizer.sha256, "size": tokenizer.size})
    torch.manual_seed(0)
    model = Transformer(Hyper(**made.hyper), tokenizer.size).eval()
    state = {"state_dict": {f"model.{name}": tensor for name, tensor in model.state_dict().items()}}
    folder = root / "runs" / made.run
    checkpoint.save(checkpoint.path_of(folder / "checkpoints", 20), state, made.run)
    made.save(folder / "record.json")
    return Run(folder=folder, cache=root / "cache", tokenizer=tokenizer, model=model)


def asked(run: Run, *arguments: object) -> int:
    command, *more = map(str, arguments)
    return main([command, str(run.folder), *more, f"--cache-dir={run.cache}"])


def test_each_line_is_translated_and_blank_lines_stay(
    run: Run, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = tmp_path / "news.en"
    text.write_bytes("\n".join([LINES[0], "", *LINES[1:], "  "]).encode() + b"\n")
    assert asked(run, "translate", text, "--beam=2", "--alpha=1") == 0
    ids = translate(run.model, Encoded(*run.tokenizer.encode(LINES)), width=2, alpha=1.0)
    first, *rest = map(run.tokenizer.decode, ids)
    assert capsysbinary.readouterr().out == "".join(f"{line}\n" for line in [first, "", *rest, ""]).encode()


def test_the_score_is_the_mean_over_all_pieces(
    run: Run, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for side in ("en", "de"):
        (tmp_path / f"news.{side}").write_bytes("\n".join(LINES).encode())
    assert asked(run, "score", tmp_path / "news.en", tmp_path / "news.de") == 0
    total, n = 0.0, 0
    for line in LINES:
        ids = torch.tensor([run.tokenizer.encode([line])[0].tolist()])
        decoder_in = torch.cat([ids.new_zeros(1, 1), ids[:, :-1]], dim=1)
        with torch.no_grad():
            log_probs = run.model(ids, decoder_in).double().log_softmax(-1)
        total -= float(log_probs.gather(2, ids[:, :, None]).sum())
        n += ids.shape[1]
    said = capsysbinary.readouterr().out.decode()
    assert f"4 pairs, {n} target pieces: nll " in said
    assert float(said.split("nll ")[1].split()[0]) == pytest.approx(total / n, abs=1e-5)
    assert float(said.split("ppl ")[1]) == pytest.approx(math.exp(total / n), rel=1e-4)


def test_an_exported_model_is_whole_and_says_whose_it_is(
    run: Run, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytest.importorskip("ctranslate2")
    folder = tmp_path / "exported"
    assert asked(run, "export", folder) == 0
    assert {"model.bin", "config.json", "tokenizer.json", "run.json"} <= {path.name for path in folder.iterdir()}
    assert run.folder.name.encode() in (folder / "run.json").read_bytes()
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    text: Any = Encoded(*tokenizer.encode(LINES))
    found = ctranslate.translate_ctranslate2(ctranslate.load(folder), text)
    assert len(found) == len(LINES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("translate", "nowhere.en"), "nowhere.en"),
        (("score", "{bad}", "{good}"), "line"),
        (("score", "{good}", "{short}"), "has 4 lines"),
        (("translate", "{bad}"), "line 2 is not UTF-8"),
        (("export", "{full}"), "new or empty folder"),
    ],
)
def test_bad_input_is_named(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "good").write_bytes("\n".join(LINES).encode())
    (tmp_path / "short").write_bytes(b"one\n")
    (tmp_path / "bad").write_bytes(b"one\n\xff\nthree\nfour")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    places = {name: tmp_path / name for name in ("good", "short", "bad", "full")}
    assert asked(run, *(word.format(**places) for word in arguments)) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_is_no_finished_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(tmp_path)]) == 2
    assert "expected the folder of a finished run" in capsys.readouterr().err
