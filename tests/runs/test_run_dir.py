"""What decides a run is in its id, and a run that was begun with other things is not taken for it; nothing else is.

What lies outside the wall, and a new rival, makes no run old.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lab_systems import LAB, LADDER
from looked_inside import spec_of

from repro.decoding.search import Search
from repro.model.config import BASE, written
from repro.model.rivals.convs2s import ConvS2S
from repro.results import comparable, places, provenance
from repro.runs.options import Options
from repro.runs.run_dir import RunDir, made_of, planned
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, Paper, Parsing, Row, Translation
from repro.tracking.run_folder import write_run
from repro.training.run_spec import TextSpec
from repro.training.stages import set_up

TAGS = {"table": "base", "row": "base", "seed": 1, "scale": "laptop", "corpus": "grammar", "pair": "en-de"}


def run_now(runs: Path = Path()) -> RunDir:
    """As much of a run as its fields need."""
    spec = spec_of(text=TextSpec(corpus="text", data="data", ids="ids", tokenizer="pieces"), hyper=BASE)
    return replace(planned([], SCALES["laptop"], Options())[0], spec=spec, runs=runs, text=(None, None))  # type: ignore[arg-type]


DECIDES = run_now().decides


def begun(runs: Path, run: str = "old", step: int = 600, **changed: Any) -> Path:
    """An unfinished run that was made of something else in these fields."""
    made = {"decides": {**DECIDES, **changed}, "commit": "ab" * 20}
    write_run(runs / run, run, tags=TAGS, params={}, paper={}, origin=made)
    if step:
        (runs / run / "checkpoints").mkdir()
        (runs / run / "checkpoints" / f"step-{step:09}.safetensors").touch()
    return runs / run


def refuse(runs: Path, **tags: Any) -> None:
    """As a new run does before it begins."""
    run: Any = SimpleNamespace(runs=runs, folder=runs / "new", tags=TAGS | tags, decides=DECIDES, name="base seed 1")
    RunDir.refuse_if_changed(run)


def refused(runs: Path) -> str:
    with pytest.raises(ValueError, match="is not finished") as error:
        refuse(runs)
    return str(error.value)


def test_each_field_that_differs_is_named_and_no_other(tmp_path: Path) -> None:
    for field, value in DECIDES.items():
        folder = begun(tmp_path / field, **{field: "before"})  # type: ignore[arg-type]
        message = refused(tmp_path / field)
        assert f"base seed 1 is not finished: {folder} holds it up to step 600, made with something else: " in message
        named = field if len(str(value)) > 30 else f"{field} (before there, {value} here)"
        assert f" else: {named}. " in message
        assert ("by commit abababababab." in message) == (field == "code")
        assert message.endswith("Undo that to resume it, or start over beside it with --fork.")


def test_what_equal_code_has_begun_keeps_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def now() -> str:
        return RunDir.id.func(SimpleNamespace(decides=DECIDES, runs=tmp_path))  # type: ignore[attr-defined]

    own, before = now(), hashlib.sha256(json.dumps({**DECIDES, "code": "before"}, sort_keys=True).encode()).hexdigest()
    begun(tmp_path, run=before[:16], code="before")
    assert now() == own
    monkeypatch.setattr(comparable, "listed_classes", lambda: [["before", DECIDES["code"]]])
    assert now() == before[:16]
    begun(tmp_path / "beside", code="before", seed=2)
    assert "something else: seed (2 there, 1 here). Undo" in refused(tmp_path / "beside")
    begun(tmp_path, run=own)  # one of this very code goes first
    assert now() == own


def test_what_is_finished_or_has_no_checkpoint_or_another_name_is_no_obstacle(tmp_path: Path) -> None:
    (begun(tmp_path, "finished", code="x") / "record.json").touch()
    begun(tmp_path, "empty", step=0, code="x")
    refuse(tmp_path)
    begun(tmp_path, "other", code="x")
    for name in ("table", "row", "seed", "scale", "corpus", "pair"):
        refuse(tmp_path, **{name: "other"})
    refused(tmp_path)
    begun(tmp_path, "new", step=0)
    refuse(tmp_path)  # it has begun, and goes on beside the other


def test_what_decides_is_all_there() -> None:
    names = [
        "seed", "corpus", "tokenizer", "data", "ids", "in_tokens", "batch_tokens", "fill", "shares", "threads",
        "precision", "beam", "alpha", "extra_length", "engine", "code",
    ]  # fmt: skip
    assert DECIDES.keys() == {*names, *(f"hyper.{name}" for name in written(vars(BASE)))}


OTHERWISE: dict[str, Any] = {
    "task": Translation("en-de", search=Search(beam=2)),
    "hyper": replace(BASE, dropout=0.3),
    "seed": 2,
    "batch_tokens": 7,
    "batch_by": "tokens",
    "devices": 2,
    "accumulate": 2,
    "threads": 2,
    "precision": "bf16",
    "backend": "ctranslate2",
    "system": ConvS2S,
}


def test_every_field_of_a_spec_decides() -> None:
    spec = run_now().spec
    changed = {one.name: replace(spec, **{one.name: OTHERWISE[one.name]}) for one in fields(spec) if one.name != "text"}
    for name in (one.name for one in fields(spec.text) if one.name != "test_subset"):  # nothing sets it
        other: Any = {name: True if name == "in_tokens" else "other"}
        changed[name] = replace(spec, text=replace(spec.text, **other))
    made = {name: json.dumps(made_of(one), sort_keys=True) for name, one in {"": spec, **changed}.items()}
    assert made.pop("accumulate") == made["devices"], "an update in two parts is one, whoever takes them"
    assert len({*made.values()}) == len(made)


def test_the_text_decides_once_it_is_open() -> None:
    [run] = planned([], SCALES["smoke"], Options())
    corpus: Any = SimpleNamespace(sha256="text", in_tokens=True)
    prepared: Any = SimpleNamespace(data_hash="data", ids_hash="ids", tokenizer=SimpleNamespace(sha256="pieces"))
    opened = run.opened(corpus, prepared, "smoke-1")
    text = TextSpec(corpus="text", data="data", ids="ids", tokenizer="pieces", in_tokens=True)
    assert opened.spec == replace(run.spec, text=text)
    assert (opened.corpus, opened.prepared, opened.scale.name) == (corpus, prepared, "smoke-1")


def test_the_id_is_made_of_all_fields(tmp_path: Path) -> None:
    ids = set()
    for field in DECIDES:
        run = SimpleNamespace(decides={**DECIDES, field: "other"}, runs=tmp_path)
        ids.add(RunDir.id.func(run))  # type: ignore[attr-defined]
    assert len(ids) == len(DECIDES)


def test_a_program_that_has_asked_for_other_numbers_makes_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match=r"no autocast around a run, .* of cpu"):
        set_up(run_now().spec)
    monkeypatch.setattr("torch.get_default_dtype", lambda: torch.float64)
    with pytest.raises(ValueError, match=r"default dtype to be torch\.float32, got torch\.float64: .* Type first"):
        set_up(run_now().spec)


# What makes no run old --------------------------------------------------------------------

NEWEST = "from repro.model.rivals.recurrent import Simple\n\n\nclass Newest(Simple):\n    gradient_norm = 2.0\n"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package in a folder of its own, whose code is what counts."""
    shutil.copytree(places.PACKAGE, tmp_path / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "repro")
    yield tmp_path / "repro"
    provenance._code.cache_clear()


def ids_of(rows: list[Row]) -> dict[str, str]:
    """The run of each row, seed 1, as the code stands now."""
    provenance._code.cache_clear()
    found = {}
    for row in rows:
        task, hyper = row.task or Translation("en-de"), row.at(SCALES["laptop"].base)
        decides = made_of(spec_of(task=task, hyper=hyper, system=row.system))
        found[row.name] = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    return found


def edited(function: str, file: Path) -> None:
    """Let a function return at once."""
    text = file.read_text()
    head = re.search(rf"^( *)def {function}\(.*?\)(?: -> [^\n]*)?:\n", text, re.DOTALL | re.MULTILINE)
    assert head, f"no function {function} in {file}"
    file.write_text(f"{text[: head.end()]}{head[1]}    return {function!r}\n{text[head.end() :]}")


OUTSIDE = {  # of each floor outside the wall a function that a run passes through, or that tells of it
    "storage": "atomic.free", "render": "markup.markdown", "paper": "system", "corpora": "datacard.card",
    "results": "labels.relation", "tracking": "run_folder.describe", "claims": "arithmetic._two_above_all",
    "pages": "build.build_all", "complexity": "measure.count", "runs": "run.made_for_gpu",
    "figures": "draw.draw_figures", "web": "report.report_html", "experiment": "main", "cli": "commands.main",
}  # fmt: skip
INSIDE = {"model": "loss.smoothed_cross_entropy", "data": "batching.share", "decoding": "search.penalty"} | {
    "training": "module.rate"
}
KINDS = [BASE_ROW, *(row for row in LADDER if row.name == "ConvS2S"), LAB[0]]
PARSER = Row("parser", lambda base: base, Paper(), Parsing())


def test_only_what_lies_behind_the_wall_makes_a_run_old(copy: Path) -> None:
    rows = [*KINDS, PARSER]
    before = ids_of(rows)
    for floor, place in OUTSIDE.items():
        module, _, function = place.rpartition(".")
        edited(function, copy / floor / f"{module}.py" if module else copy / f"{floor}.py")
    assert ids_of(rows) == before
    for floor, place in INSIDE.items():
        module, _, function = place.partition(".")
        edited(function, copy / floor / f"{module}.py")
        after = ids_of(rows)
        assert not [name for name in after if after[name] == before[name]], floor
        before = after
    edited("count_brackets", copy / "decoding/evalb.py")
    after = ids_of(rows)
    assert [name for name in after if after[name] != before[name]] == ["parser"]


def test_from_behind_the_wall_a_parser_takes_these_alone() -> None:
    """One import more, even inside a function, makes every parser old."""
    files = provenance._code((), (provenance.PARSING,)).files
    assert files.keys() == {"repro.data.treebank", "repro.decoding.evalb", "repro.decoding.search"}


def test_a_new_rival_makes_no_run_old(copy: Path) -> None:
    rows = [BASE_ROW, *(row for row in LADDER if row.name in ("simple", "ConvS2S")), LAB[0]]
    before = ids_of(rows)
    assert len({*before.values()}) == len(rows)
    (copy / "model/rivals/newest.py").write_text(NEWEST)
    assert ids_of(rows) == before
    for row in rows:  # nor does its row: the file of the table decides nothing
        assert "ladder.py" not in provenance.fingerprints(row.system)
    of_base = provenance.fingerprints()
    assert not [file for file in of_base if file.startswith(("model/rivals/", "model/ablations/"))]


@pytest.mark.faults
def test_a_change_of_a_rival_makes_its_own_runs_old_and_those_that_stand_on_it(copy: Path) -> None:
    before = ids_of([BASE_ROW, *LADDER])
    file = copy / "model/rivals/convs2s.py"
    file.write_text(file.read_text().replace("SPREAD = 0.1", "SPREAD = 0.2"))
    after = ids_of([BASE_ROW, *LADDER])
    assert {name for name in before if after[name] != before[name]} == {"ConvS2S"}
    file = copy / "model/rivals/convolution.py"
    file.write_text(
        file.read_text().replace("self.dilation = kernel, dilation", "self.dilation = kernel, 2 * dilation")
    )
    changed = {name for name, of in ids_of([BASE_ROW, *LADDER]).items() if of != before[name]}
    of_hybrids = {name for name in before if name.startswith(("encoder: ", "decoder: "))}
    assert changed == {"ConvS2S", "ByteNet"} | of_hybrids
