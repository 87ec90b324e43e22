"""What decides nothing makes no run old: what lies outside the wall, and a new rival."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_systems import LAB, LADDER
from looked_inside import spec_of

from repro.results import places, provenance
from repro.runs.run_dir import made_of
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, Paper, Row
from repro.runs.task import Parsing, Translation

NEWEST = "from repro.model.rivals.recurrent import Simple\n\n\nclass Newest(Simple):\n    gradient_norm = 2.0\n"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package in a folder of its own, whose code is what counts."""
    shutil.copytree(places.PACKAGE, tmp_path / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "repro")
    yield tmp_path / "repro"
    forget()


def forget() -> None:
    provenance._code.cache_clear()


def ids(rows: list[Row]) -> dict[str, str]:
    """The run of each row, seed 1, as the code stands now."""
    forget()
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
    "storage": "atomic.free", "render": "markdown.markdown", "paper": "system", "corpora": "datacard.card",
    "results": "labels.relation", "tracking": "run_folder.describe", "claims": "arithmetic._two_above_all",
    "pages": "build.texts", "complexity": "measure.count", "runs": "run.made_for_gpu",
    "figures": "draw.draw_figures", "web": "report.report_html", "experiment": "main", "cli": "commands.main",
}  # fmt: skip
INSIDE = {"model": "loss.smoothed_cross_entropy", "data": "batching.share", "decoding": "search.penalty"} | {
    "training": "schedule.rate"
}
KINDS = [BASE_ROW, *(row for row in LADDER if row.name == "ConvS2S"), LAB[0]]
PARSER = Row("parser", lambda base: base, Paper(), Parsing())


def test_only_what_lies_behind_the_wall_makes_a_run_old(copy: Path) -> None:
    rows = [*KINDS, PARSER]
    before = ids(rows)
    for floor, place in OUTSIDE.items():
        module, _, function = place.rpartition(".")
        edited(function, copy / floor / f"{module}.py" if module else copy / f"{floor}.py")
    assert ids(rows) == before
    for floor, place in INSIDE.items():
        module, _, function = place.partition(".")
        edited(function, copy / floor / f"{module}.py")
        after = ids(rows)
        assert not [name for name in after if after[name] == before[name]], floor
        before = after
    edited("count_brackets", copy / "decoding/evalb.py")
    after = ids(rows)
    assert [name for name in after if after[name] != before[name]] == ["parser"]


def test_from_behind_the_wall_a_parser_takes_these_alone() -> None:
    """One import more on the way to them, even inside a function, makes every parser old."""
    code = provenance._code_of_task(PARSER.task)
    taken = code.taken("repro.runs.task")
    inside = [path.relative_to(places.PACKAGE.parent).with_suffix("") for path in places.PACKAGE.glob("*/**/*.py")]
    names = [".".join(path.parts) for path in inside if path.parts[1] in ("model", "data", "training", "decoding")]
    assert sorted(name for name in names if not name.endswith("__init__") and code.digest(name) in taken) == [
        "repro.data.shards", "repro.data.tokenizer", "repro.data.treebank", "repro.decoding.evalb",
    ]  # fmt: skip


def test_a_new_rival_makes_no_run_old(copy: Path) -> None:
    rows = [BASE_ROW, *(row for row in LADDER if row.name in ("simple", "ConvS2S")), LAB[0]]
    before = ids(rows)
    assert len({*before.values()}) == len(rows)
    (copy / "model/rivals/newest.py").write_text(NEWEST)
    assert ids(rows) == before
    for row in rows:  # nor does its row: the file of the table decides nothing
        assert "ladder.py" not in provenance.fingerprints(row.system)
    of_base = provenance.fingerprints()
    assert not [file for file in of_base if file.startswith(("model/rivals/", "model/ablations/"))]


@pytest.mark.faults
def test_a_change_of_a_rival_makes_its_own_runs_old_and_those_that_stand_on_it(copy: Path) -> None:
    before = ids([BASE_ROW, *LADDER])
    file = copy / "model/rivals/convs2s.py"
    file.write_text(file.read_text().replace("SPREAD = 0.1", "SPREAD = 0.2"))
    after = ids([BASE_ROW, *LADDER])
    assert {name for name in before if after[name] != before[name]} == {"ConvS2S"}
    file = copy / "model/rivals/convolution.py"
    file.write_text(
        file.read_text().replace("self.dilation = kernel, dilation", "self.dilation = kernel, 2 * dilation")
    )
    changed = {name for name, of in ids([BASE_ROW, *LADDER]).items() if of != before[name]}
    of_hybrids = {name for name in before if name.startswith(("encoder: ", "decoder: "))}
    assert changed == {"ConvS2S", "ByteNet"} | of_hybrids
