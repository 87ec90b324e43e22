"""The suite from Python, as `docs/python.md` has it."""

import csv
import json
import math
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from cli.test_decode import Run, finished
from figures.conftest import record
from paper_runs import perplexity
from report_records import HOSTILE, fill
from text_folders import put, text_folder
from toy_system import Toy
from typed import typed

import repro
from repro.cli.library import Loaded
from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import Subwords
from repro.experiment import Paper, Row
from repro.model.config import Hyper
from repro.model.special_tokens import EOS, PAD
from repro.pages.build import write_scale
from repro.results.frame import ResultSet, noted_rows
from repro.results.record import path

ROOT = Path(__file__).parents[1]
SIZES = {"train": 40, "dev": 3, "test": 4}
LINES = ["the cat sees a dog", "ein alter Hund schläft", "the old dog sleeps", "sees"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The folder of a finished run, with random weights."""
    return finished(tmp_path_factory.mktemp("made"), train_tokenizer(LINES * 3, Subwords("bpe", 280)))


@pytest.fixture
def loaded(made: Run) -> Loaded:
    return repro.load(made.folder)


def test_importing_it_costs_nothing_and_names_what_it_has() -> None:
    code = "import repro, sys; print({'torch', 'pandas', 'numpy'} & set(sys.modules), repro.load.__name__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout == "set() load\n"
    assert dir(repro) == ["__version__", *sorted(repro.__all__)] == ["__version__", "load", "run", "table"]
    with pytest.raises(AttributeError, match="repro has no lode; it has load, run, table"):
        _ = repro.lode
    assert (ROOT / "repro" / "py.typed").exists()


@pytest.fixture
def quick(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in a folder that has a store, and that are not looked inside: both take longer than a small run."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(template, tmp_path / "mlflow.db")
    monkeypatch.setattr("repro.runs.outputs.is_inside_of", lambda *_: True)


@pytest.mark.usefixtures("own_signals", "quick")
def test_every_example_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["record"].row == "h=4"
    assert names["run"].record.row == "wide"
    table = repro.table("table3_A", scale="smoke")
    assert list(table.index) == ["base", "h=1", "h=4", "h=16", "h=32"]
    assert table["n"].tolist() == [0, 0, 1, 0, 0]
    assert table.loc["h=4", "dev/ppl"] == names["record"].scores["dev"]["ppl"]
    assert repro.table("own", scale="smoke")["n"].to_dict() == {"base": 0, "narrow": 1, "wide": 1}
    assert "experiments/own.py" not in capsys.readouterr().out, "there is no such file to type"
    again = repro.run("table3_A/h=4", scale="smoke")
    assert again.run == names["record"].run
    assert len(list((tmp_path / "runs").glob("*/record.json"))) == 3
    page = (tmp_path / "results" / "own" / "smoke" / "own.md").read_text("utf-8")
    assert "`repro.run` leaves a record of each run" in page
    assert "experiments/own.py" not in page


@pytest.mark.usefixtures("own_signals", "quick")
def test_the_notebook_of_first_steps_runs_as_it_is() -> None:
    notebook = json.loads((ROOT / "docs" / "first_steps.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["cells"][0]["cell_type"]) == (4, "markdown")
    assert [one for one in notebook["cells"] if one.get("outputs") or one.get("execution_count")] == []
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert (len(names["run"].translate([names["source"]])), names["record"].row) == (1, "base")
    assert repr(names["attention"]).startswith("<attention from ")


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Any]:
    """Options of a run on text of one's own, which decodes in no time."""
    splits = {split: [(f"{split} en {i % 7}", f"{split} de {i % 7}") for i in range(n)] for split, n in SIZES.items()}
    text = text_folder(tmp_path / "text", **splits)
    return {"scale": "smoke", "steps": 1, "corpus": "folder", "data_dir": text, "vocab_size": 300}


@pytest.mark.usefixtures("own_signals", "quick")
def test_rows_of_a_program_stand_in_one_table_in_the_order_of_their_first_runs(own: dict[str, Any]) -> None:
    # the folder is called after the text, which is known only when it was opened: all rows had the first place
    deep = partial(Toy, depth=2)
    rows = {"z": Row("z", partial(with_d_ff, d_ff=8), Paper()), "a": Row("a", lambda base: base, Paper(), system=deep)}
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        torch.set_num_threads(2)
        torch.set_float32_matmul_precision("high")
        made = [repro.run(rows[name], **own) for name in ("z", "a")]
        assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (2, "high"), "the program goes on"
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])
    scale = made[0].scale
    assert [(one.row, one.position) for one in made] == [("z", 0), ("a", 1)]
    noted = noted_rows(Path("results/own") / scale)
    assert {name: one.position for (of, name), one in noted.items() if of == "own"} == {"z": 0, "a": 1}
    assert repro.run(rows["z"], **own).position == 0
    assert repro.table("own", scale=scale, every_column=True)["n"].to_dict() == {"base": 0, "z": 1, "a": 1}
    for system, said in ((None, r"of own, of which there is no file"), (Toy, r"is toy_system.Toy. Give the system")):
        with pytest.raises(ValueError, match=rf"Run {made[1].run} is a toy_system.Toy\(depth=2\)[ ,].*{said}"):
            repro.load(made[1].run, system=system)
    loaded = repro.load(made[1].run, system=deep)
    assert len(loaded.translate(["the cat sees a dog"])) == 1
    with pytest.raises(ValueError, match=r"row 'a' of own has none"):
        loaded.attention("the cat", "die Katze")


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        ("h=4", {}, "expected a row as TABLE/ROW, such as table3_A/h=4, or base, or a Row; got 'h=4'"),
        ("table3_A/h=5", {}, "Unknown row 'h=5' of table3_A; expected some of base, h=1"),
        ("base", {"jobs": 2}, "jobs: expected options of one run, which are corpus, pair,"),
        ("base", {"seed": -1}, "expected a whole number from 1 on as seed, got -1"),
        ("base", {"precision": "fp16"}, "--precision: expected one of fp32, bf16, got 'fp16'"),
        ("base", {"scale": "smoke-2-devices-bf16"}, "says --devices 2: expected options of one run in this process"),
    ],
)
def test_what_cannot_be_run_is_named(row: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        repro.run(row, **options)
    with pytest.raises(FileNotFoundError, match="looked in .*nowhere"):
        repro.run("base", scale="smoke", data_dir="nowhere")


def csv_lines(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def test_a_table_has_the_numbers_of_its_csv(tmp_path: Path) -> None:
    for made_up in fill(tmp_path):  # whose test is as its dev
        test = {**made_up.scores["test"], "bleu": made_up.scores["dev"]["bleu"] - 7.0, **perplexity(2.5)}  # type: ignore[operator]
        replace(made_up, scores={**made_up.scores, "test": test}).save(path(tmp_path, made_up))
    write_scale(replace(ResultSet.read(tmp_path / "laptop"), own=True))
    table = repro.table("table3_A", results_dir=tmp_path, every_column=True)
    lines = {line["row"]: line for line in csv_lines(tmp_path / "laptop" / "table3_A.csv")}
    assert list(table.index) == list(lines) == ["base", "h=1", HOSTILE, "h=4"]
    for row, line in lines.items():
        for name in ("n", "dev/bleu", "test/bleu", "test/ppl", "dev/bleu_half_width", "paper/bleu", "dev/ppl_to_base"):
            number = float(line[name]) if line[name] else math.nan
            assert table.loc[row, name] == pytest.approx(number, rel=1e-8, nan_ok=True), (row, name)
    shown = repro.table("table3_A", results_dir=tmp_path)
    of_each = ("dev/{}", "dev/{}_half_width", "test/{}", "test/{}_half_width", "paper/{}")
    assert list(shown.columns) == ["n", *(name.format(score) for score in ("ppl", "bleu") for name in of_each)]
    assert shown.loc["base", "test/bleu"] == pytest.approx(shown.loc["base", "dev/bleu"] - 7.0)


def test_a_table_is_that_of_its_name(tmp_path: Path) -> None:
    """All of Table 3 as `results/<scale>/table3.csv` has it: the base, the groups, big."""
    found = repro.table("table3", results_dir=ROOT / "results", every_column=True)
    lines = csv_lines(ROOT / "results" / "laptop" / "table3.csv")
    assert [*zip(found["table"], found.index, strict=True)] == [(line["table"], line["row"]) for line in lines]
    assert found["n"].tolist() == [int(line["n"]) for line in lines]
    refused = r"expected records of lab_parts in .*laptop, found none\. Run the table first"
    with pytest.raises(ValueError, match=refused):
        repro.table("lab_parts", results_dir=tmp_path)


def test_it_translates_as_the_command_does(loaded: Loaded, made: Run, capsys: Any) -> None:
    text = put(made.folder.parents[1] / "text", "\n".join(["the cat sees a dog", "", "sees"]) + "\n")
    said = typed(capsys, "translate", made.folder, text, "--beam", "3", "--alpha", "0").split("\n")
    expected = loaded.translate(["the cat sees a dog", "", "sees"], beam=3, alpha=0)
    assert (said[:3], expected[1]) == (expected, "")
    # what can be gone through once only is, and blanks are no sentence
    assert loaded.translate((line for line in ["the cat sees a dog", " \t", "sees"]), beam=3, alpha=0) == expected


def test_threads_that_share_a_run_get_the_same_answers(loaded: Loaded) -> None:
    alone = loaded.translate(LINES), loaded.score(LINES, LINES[::-1]).log_probs
    together = threading.Barrier(3)

    def ask(_: int) -> list[Any]:
        together.wait()
        return [(loaded.translate(LINES), loaded.score(LINES, LINES[::-1]).log_probs) for _ in range(3)]

    with ThreadPoolExecutor(3) as threads:
        assert [one for found in threads.map(ask, range(3)) for one in found] == [alone] * 9


def test_scores_are_sums_of_log_probabilities_sentence_by_sentence(loaded: Loaded, made: Run) -> None:
    sources, targets = LINES[:3], [LINES[3], LINES[1], LINES[0]]
    found = loaded.score(sources, targets)
    for source, target, log_prob, n in zip(sources, targets, found.log_probs, found.n_each, strict=True):
        read, written = ([*made.tokenizer.encode([line])[0].tolist()] for line in (source, target))
        assert written[-1] == EOS
        ids, decoder_in = torch.tensor([read]), torch.tensor([[PAD, *written[:-1]]])
        with torch.inference_mode():
            [hidden] = made.model.decode(decoder_in, made.model.encode(ids), ids)
            log_p = (hidden @ made.model.embedding.weight.T).log_softmax(-1)
        assert log_prob == pytest.approx(sum(float(log_p[i, token]) for i, token in enumerate(written)), rel=1e-5)
        assert n == len(written)
    assert found.nll == pytest.approx(-sum(found.log_probs) / found.n_tokens)
    assert found.ppls[1] == pytest.approx(math.exp(-found.log_probs[1] / found.n_each[1]))


def test_attention_is_that_of_the_model_drawn_and_with_its_tokens(loaded: Loaded, made: Run, tmp_path: Path) -> None:
    found = loaded.attention("the cat sees a dog", "sees a cat")
    source, target = (made.tokenizer.encode([line])[0].tolist() for line in ("the cat sees a dog", "sees a cat"))
    n_layers = loaded.hyper.n_layers
    assert {*found.weights} == {
        (part, layer) for part in ("encoder", "decoder", "cross") for layer in range(1, n_layers + 1)
    }
    assert found.source_tokens[-1] == "</s>"
    assert found.target_tokens[0] == "(begin)", "as in the viewer of the report"
    assert (len(found.source_tokens), len(found.target_tokens)) == (len(source), len(target))
    with torch.inference_mode():
        maps = made.model.attention_maps(torch.tensor([source]), torch.tensor([[PAD, *target[:-1]]]))
    name = next(name for name in maps if name.startswith("decoder.1.cross"))
    head = found.head("cross", layer=2, head=2)
    assert torch.equal(torch.tensor(head.to_numpy()), maps[name][0, 1])
    assert (list(head.index), list(head.columns)) == (list(found.target_tokens), list(found.source_tokens))
    assert head.sum(axis=1).to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert found.head("decoder", layer=1, head=1).to_numpy()[0, 1:].sum() == 0.0
    with pytest.raises(ValueError, match=r"expected a head, from 1 on, .*got cross 1, head 0"):
        found.head("cross", 1, 0)
    for figure, title, weights in (
        (found.plot(), f"cross, layer {n_layers}, mean of the heads", found.weights["cross", n_layers].mean(0)),
        (found.plot("encoder", layer=1, head=2), "encoder, layer 1, head 2", found.weights["encoder", 1][1]),
    ):
        [axes] = figure.axes
        assert axes.get_title() == title
        assert (axes.images[0].get_array() == weights).all()
    figure.savefig(tmp_path / "attention.png")
    assert [label.get_text() for label in axes.get_xticklabels()] == list(found.source_tokens)
    with pytest.raises(ValueError, match="expected a head, from 1 on"):
        found.plot("middle")


def test_bad_lines_are_named(loaded: Loaded) -> None:
    with pytest.raises(ValueError, match=r"lines: expected a list of lines, got one text"):
        loaded.translate("the cat")
    with pytest.raises(ValueError, match=r"sources: expected lines of text, got 'a\\nb' as number 2\."):
        loaded.score(["a", "a\nb"], ["a", "b"])
    with pytest.raises(ValueError, match="expected as many sources as targets, and one at least; got 2 and 1"):
        loaded.score(["a", "b"], ["a"])
    for line, why in {"cat " * 5_000: "is longer than 5,000 characters", "a\0b": "holds a NUL character"}.items():
        with pytest.raises(ValueError, match=f"lines: number 2 {why}"):
            loaded.translate(["a", line])
    with pytest.raises(ValueError, match="expected a run that parses"):
        loaded.parse(["a b"])


def test_runs_and_attention_are_compared_by_identity(loaded: Loaded) -> None:
    """As keys of a cache are; what they hold has no hash, and arrays no single answer to ==."""
    for one, other in ((loaded, Loaded(loaded.trained)), (loaded.attention("a", "b"), loaded.attention("a", "b"))):
        assert len({one, one, other}) == 2
        assert one != other


def test_a_run_is_shown_in_one_line_with_its_score(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(LINES * 3, Subwords("bpe", 280))
    one = record("h=1", 1, tokenizer={"sha256": tokenizer.sha256, "size": tokenizer.size})
    shown = repr(repro.load(finished(tmp_path, tokenizer, one).folder))
    assert shown.startswith(f"<run {one.run}: h=1 of ")
    assert shown.endswith(f"dev bleu {one.score('dev', 'bleu'):.2f}>")


def with_d_ff(base: Hyper, d_ff: int) -> Hyper:
    return replace(base, d_ff=d_ff)
