"""All figures of a scale: what is made, what is skipped and why, and the same bytes again."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rcParams

from repro.figures import draw, lab
from repro.figures.attention_maps import map_of_words
from repro.figures.style import Numbers
from repro.figures.trained import whose
from repro.results.record import Record, path, signature_of
from repro.runs.table import SCORES, Parsing
from repro.storage import signed_json

Make = Callable[..., Record]
EACH = [
    "figure1_architecture",
    "figure2_attention",
    "figure3_long_distance",
    "figure4_sharp_heads",
    "figure5_different_heads",
    "softmax_saturation",
    "mask",
    "norms",
    "softmax_of_unequal",
    "position_codes",
    "where_the_source_enters",
    "curves_table3_A",
    "differences",
    "quality_and_cost",
]


def measurement(record: Record) -> dict[str, Any]:
    """Two heads over four words: one looks at itself, one at all alike."""
    weights, words = np.stack([np.eye(4), np.full((4, 4), 0.25)]), ["making", "its", "way", "."]
    maps = [map_of_words(about, words, range(4), weights) for about in ("making", "its")]
    return {**whose(record), "dirty": False, "layer": 2, "n_layers": 3, "maps": maps}


def drawn_in(results: Path, make: Make) -> tuple[Path, list[Path], list[str]]:
    """A folder of results, its figures, and what was skipped."""
    for row, seed in (("base", 1), ("base", 2), ("h=1", 1), ("h=1", 2)):
        record = make(row, seed, bleu=50 + seed, flops=1e9 * (1 + (row == "h=1")))
        record.save(path(results, record))
    signed_json.write(results / "laptop/figures/attention.json", {"format": 1, **measurement(make())})
    return results, *draw.draw_figures(results, "laptop", results / "nowhere", results / "nowhere")


@pytest.fixture(autouse=True, scope="module")
def house() -> None:
    """The command enters the look of figures by itself."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory, a_record: Make) -> tuple[Path, list[Path], list[str]]:
    return drawn_in(tmp_path_factory.mktemp("results"), a_record)


def test_everything_is_made_from_records_and_a_measurement(drawn: tuple[Path, list[Path], list[str]]) -> None:
    results, made, skipped = drawn
    assert [said.partition(":")[0] for said in skipped] == [
        "head similarity", "soft alignment", "activations", "gradients of the first word",
    ]  # fmt: skip
    forms = {"differences": ("svg", "csv")}
    assert made == [results / f"laptop/figures/{name}.{form}" for name in EACH for form in forms.get(name, ("svg",))]
    for file in made:
        if file.suffix == ".svg":
            content = file.read_bytes()
            assert content.startswith(b"<?xml")
            assert b"<dc:date>" not in content, "neither its date nor its maker"
            assert b"Matplotlib v" not in content[2_000:]


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(
    drawn: tuple[Path, list[Path], list[str]], a_record: Make, tmp_path: Path
) -> None:
    results, made, skipped = drawn
    _, files, said = drawn_in(tmp_path, a_record)
    assert [file.relative_to(tmp_path) for file in files] == [file.relative_to(results) for file in made]
    assert [one for one, other in zip(files, made, strict=True) if one.read_bytes() != other.read_bytes()] == []
    assert [text.replace(str(tmp_path), "") for text in said] == [text.replace(str(results), "") for text in skipped]


def test_a_disk_that_fails_is_no_figure_that_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "laptop").mkdir()
    (tmp_path / "laptop" / "figures").write_text("no folder")
    with pytest.raises(OSError, match="figures"):
        draw.draw_figures(tmp_path, "laptop", tmp_path, tmp_path)


def only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the drawings that stand on nothing."""
    monkeypatch.setattr(draw, "_of_modules", list)
    monkeypatch.setattr(lab, "PICTURES", {})


def test_what_has_no_numbers_is_skipped_with_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only(monkeypatch)
    made, [attention, similarity, alignment, norms, gradients, differences, quality] = draw.draw_figures(
        tmp_path / "results", "laptop", tmp_path / "runs", tmp_path / "cache"
    )
    assert made == []
    assert attention.startswith("figures 3 to 5: no ")
    assert attention.endswith("Run `python experiments/table3_A.py --rows base --scale laptop`.")
    assert similarity.startswith("head similarity: no run of committed code of the base row left ")
    assert alignment.startswith("soft alignment: no run of committed code of the row 'soft alignment' of ladder left ")
    assert alignment.endswith('Run `python experiments/ladder.py --scale laptop --rows base "soft alignment"`.')
    assert norms.endswith('Run `python experiments/lab_parts.py --rows base "no norm" --scale laptop`.')
    assert gradients.startswith("gradients of the first word: no ")
    assert gradients.endswith('`python experiments/ladder.py --rows base simple "soft alignment" --scale laptop`.')
    assert differences.startswith("differences: ")
    assert quality.startswith("quality and cost: no finished runs of committed code of two rows that differ in cost. ")
    assert all(
        said.endswith("Run `python experiments/all_tables.py --scale laptop`.") for said in (differences, quality)
    )
    (tmp_path / "results" / "captions-bf16").mkdir(parents=True)
    _, said = draw.draw_figures(tmp_path / "results", "captions-bf16", tmp_path, tmp_path)
    assert said[-1].endswith("Run `python experiments/all_tables.py --scale captions`.")


def test_a_damaged_record_costs_its_own_figures_only(
    monkeypatch: pytest.MonkeyPatch, a_record: Make, tmp_path: Path
) -> None:
    only(monkeypatch)
    monkeypatch.setattr(
        draw.curves, "draw_curves", lambda table, records: [Numbers(table, ["n"], [rcParams["font.family"]])]
    )
    for record in (a_record("base"), a_record("h=1"), a_record("h=4", table="table3_B")):
        record.save(path(tmp_path, record))
    (tmp_path / "laptop/table3_B/h=4-seed1.json").write_text("{}", "utf-8")
    made, skipped = draw.draw_figures(tmp_path, "laptop", tmp_path, tmp_path)
    assert made == [tmp_path / "laptop/figures/table3_A.csv"]
    assert made[0].read_text() == "n\nSTIXGeneral\n", "the command draws in our look"
    assert [sentence.partition(":")[0] for sentence in skipped] == [
        "figures 3 to 5",
        "head similarity",
        "soft alignment",
        "activations",
        "gradients of the first word",
        "curves of table3_B",
        "operations of table3_B",
        "fading of table3_B",
        "differences",
        "quality and cost",
    ]
    assert "h=4-seed1.json" in skipped[5]


def test_an_unknown_scale_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        draw.main(["--scale", "desktop", "--results-dir", str(tmp_path)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Unknown scale 'desktop'; expected one of smoke, laptop" in said
    assert "--results-dir results" not in said
    with pytest.raises(SystemExit):
        draw.main(["--scale", "captions-bf16", "--results-dir", str(tmp_path)])
    assert "Published records take --results-dir results." in capsys.readouterr().err


def test_the_command_prints_what_it_made_and_what_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Path("a.svg")], ["figure 9: no numbers. Run it."]
    monkeypatch.setattr(draw, "draw_figures", lambda *places: found)
    draw.main([])
    said = "Figures of results/own/laptop\na.svg\nSkipped figure 9: no numbers. Run it.\n"
    assert capsys.readouterr() == (said, "")


def test_nothing_heavy_is_imported_before_a_figure_asks() -> None:
    script = "import sys, repro.figures.draw; print({'torch', 'lightning', 'mlflow', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_trees_are_not_held_against_translations(
    monkeypatch: pytest.MonkeyPatch, a_record: Make, tmp_path: Path
) -> None:
    only(monkeypatch)
    f1 = {"nll": 0.0, "ppl": 1.0, **dict.fromkeys(SCORES, 50.0), **{signature_of(name): "F1" for name in SCORES}}
    parser = a_record(
        "WSJ only", table="table4", task=Parsing().facts, system="a.System()", scores={"dev": f1, "test": f1}
    )
    runs = {"base": [a_record("base")], "table3_A": [a_record("h=1")], "table4": [parser]}
    monkeypatch.setattr(draw, "record_folders", lambda place: [place / table for table in runs])
    monkeypatch.setattr(draw, "load_records", lambda folder: runs.get(folder.name, []))
    (tmp_path / "laptop").mkdir()
    shown: dict[str, list[str]] = {}
    monkeypatch.setattr(draw.curves, "draw_curves", lambda table, of: shown.update({table: [r.row for r in of]}) or [])
    monkeypatch.setattr(draw.curves, "draw_over_operations", lambda table, of: pytest.fail(table))
    monkeypatch.setattr(draw.curves, "draw_fading", lambda table, of, results: pytest.fail(table))
    draw.draw_figures(tmp_path, "laptop", tmp_path, tmp_path)
    assert shown == {"table3_A": ["base", "h=1"], "table4": ["WSJ only"]}
