"""Models that leave: each folder is whole, says what it is, opens without this project, or is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cli.test_decode import LINES, Run, asked, finished
from results.test_departures import parsed

from repro.cli.commands import main
from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import Subwords
from repro.results.record import TRANSLATION, load, without_value
from repro.runs.export import FORMATS, model_card
from repro.runs.load import open_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finished(tmp_path_factory.mktemp("run"), train_tokenizer(LINES * 3, Subwords("bpe", 280)))


def test_what_went_out_as_safetensors_comes_back_to_the_bit(run: Run, tmp_path: Path) -> None:
    assert main(["export", str(run.folder), "--format", "safetensors", str(tmp_path / "out")]) == 0
    back = open_run(tmp_path / "out")
    expected = run.model.state_dict()
    found = back.model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert back.tokenizer.sha256 == run.tokenizer.sha256
    assert back.record == load(run.folder / "record.json")
    weights = tmp_path / "out" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(ValueError, match=r"model\.safetensors has changed since it was exported"):
        open_run(tmp_path / "out")
    nothing = without_value(TRANSLATION)
    diverged = replace(back.record, status="diverged", scores={"dev": nothing, "test": nothing}, last_mean=None)
    diverged.save(tmp_path / "out" / "record.json")
    with pytest.raises(ValueError, match="out: the run diverged after step .*, so it has no weights to use"):
        open_run(tmp_path / "out")


@pytest.mark.parametrize("to", FORMATS)
def test_the_card_is_made_from_the_record(run: Run, to: str) -> None:
    record = load(run.folder / "record.json")
    hostile = replace(record, row="a | b <script>", table="table3_A", position=0)
    card = model_card(hostile, to)
    assert card.startswith('---\nlanguage: ["en", "de"]\n')
    for told in (record.run, "60.00", "tok:13a", "MIT, as this package", "a grammar of few words"):
        assert told in card, told
    assert "<script>" not in card
    assert f"A model of {record.params['here']:,} parameters (Transformer), trained to reproduce a row" in card


def test_the_card_of_a_parser_speaks_of_trees() -> None:
    card = model_card(parsed(), "ctranslate2")
    assert 'language: ["en"]\n' in card
    assert "pipeline_tag" not in card
    assert "python -m repro parse makes trees of them" in card


def test_one_format_takes_neither_a_file_nor_the_folder_of_another_and_is_not_read_as_a_run(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, words = tmp_path / "out", ("export", "--format", "safetensors")
    (tmp_path / "file").touch()
    assert "which is a file" in asked(run, capsys, *words, tmp_path / "file", code=2)
    asked(run, capsys, *words, folder)
    origin = json.loads((folder / "run.json").read_bytes())
    (folder / "run.json").write_text(json.dumps({**origin, "format": "huggingface"}))
    assert "holds something else" in asked(run, capsys, *words, folder, code=2)
    (tmp_path / "text").write_text("sees\n", "utf-8")
    assert main(["translate", str(folder), str(tmp_path / "text")]) == 2
    assert "is an export to huggingface, for others to open" in capsys.readouterr().err


def test_a_row_that_the_format_does_not_have_is_named(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = load(run.folder / "record.json")
    other = replace(record, hyper={**record.hyper, "d_k": 4}, row="d_k=4", table="table3_B", position=0)
    made = finished(tmp_path / "other", run.tokenizer, other)
    assert main(["export", str(made.folder), "--format", "huggingface", str(tmp_path / "out")]) == 2
    assert (
        "row 'd_k=4' of table3_B cannot be exported to huggingface: MarianMT has heads as wide as"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()
