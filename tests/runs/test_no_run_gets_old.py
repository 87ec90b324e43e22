"""A new rival makes no run old: the ids of all other rows, and the digest of the code that decides them, stay."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lab_systems import LAB
from ladder_systems import LADDER

from repro.results import places, provenance
from repro.runs.recipe import Recipe
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, Row
from repro.runs.task import Translation

PREPARED: Any = SimpleNamespace(data_hash="data", tokenizer=SimpleNamespace(sha256="tokens"))
NEWEST = "from repro.model.rivals.recurrent import Simple\n\n\nclass Newest(Simple):\n    gradient_norm = 2.0\n"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package in a folder of its own, whose code is what counts."""
    shutil.copytree(places.PACKAGE, tmp_path / "repro", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "repro")
    yield tmp_path / "repro"
    forget()


def forget() -> None:
    provenance._ours.cache_clear()
    provenance._with.cache_clear()


def ids(rows: list[Row]) -> dict[str, str]:
    """The run of each row, seed 1, as the code stands now."""
    forget()
    found = {}
    for row in rows:
        recipe = Recipe(
            prepared=PREPARED, task=Translation("en-de"), in_tokens=False, hyper=row.at(SCALES["laptop"].base), seed=1,
            batch_tokens=512, batch_by="padded_tokens", devices=1, accumulate=1, threads=1, precision="fp32",
            backend="torch", system=row.system,
        )  # fmt: skip
        decides = {**recipe.decides, "code": provenance.fingerprint(row.system)}
        found[row.name] = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    return found


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
