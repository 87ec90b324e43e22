"""Records of runs that were never made, for reports: three rows of which one bears a hostile name."""

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import changed, paper_run, perplexity, told_apart

from repro.claims.evidence import evidence_of
from repro.pages.scale_data import ScaleData
from repro.results.frame import Listed, ResultSet, note_rows
from repro.results.record import Record, path

HOSTILE = '<script>document.title = "1"</script><img src=x onerror=alert(1)> \u202e& \' " </script> =cmd()'
CURVE = {"step": [10, 20, 30], "nll": [5.0, 3.0, 2.0]}
CURVES = {"curves": {"train": CURVE, "dev": CURVE}, "settings": paper_run().settings | {"claim": "<i>signs</i>"}}


def scored(row: str, table: str, seed: int, bleu: float, **other: Any) -> Record:
    record = told_apart(row, table, seed, scale="laptop", run=f"{seed:x}{abs(len(row)):015x}", **CURVES, **other)
    scores = {
        split: {**record.scores[split], "bleu": bleu, **perplexity(2.0 - bleu / 100)} for split in ("dev", "test")
    }  # type: ignore[literal-required]
    return replace(record, scores=scores, cost=record.cost | {"flops": 1e12 * bleu})  # type: ignore[arg-type]


def fill(results: Path) -> list[Record]:
    """A base of three seeds, h=1 of two, a row of a hostile name, and one that was never run."""
    records = [scored("base", "base", seed, 60.0 + seed) for seed in (1, 2, 3)]
    records += [scored("h=1", "table3_A", seed, 9.0 + seed, position=0, hyper=changed(n_heads=1)) for seed in (1, 2)]
    records += [scored(HOSTILE, "table3_A", 1, 70.5, position=1)]
    for record in records:
        record.save(path(results, record))
    of_a = {("table3_A", row): Listed(i, paper_run().paper) for i, row in enumerate(("h=1", HOSTILE, "h=4"))}
    note_rows(results / "laptop", of_a)
    return records


def unjudged(folder: Path) -> ScaleData:
    """The records of a scale with all that its report is made of but verdicts, which take seconds."""
    result_set = ResultSet.read(folder)
    evidence = evidence_of(result_set.everything)
    return ScaleData(result_set=result_set, frames={}, evidence=evidence, judged=[], stated=[])


def unjudged_of(records: Iterable[Record], results: Path) -> ScaleData:
    """The same of these records of scale laptop, where no others are."""
    for one in records:
        one.save(path(results, one))
    return unjudged(results / "laptop")


def unpacked(text: str) -> Any:
    """The value of a text of base64, gzip and JSON. Raises ValueError where it is none."""
    return json.loads(gzip.decompress(base64.b64decode(text, validate=True)))


def packed_at(page: Any, id: str) -> Any:
    """The value that stands packed in the element `id` of a page in a browser."""
    return unpacked(page.locator(f"#{id}").text_content())
