"""Records of parsers that were never trained, with the brackets of their sentences beside them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import paper_run

from repro.results.record import Record, path, signature_of
from repro.results.sentences import Brackets, write_brackets
from repro.runs.task import SCORES, Parsing


def parser(
    results: Path,
    row: str,
    seed: int,
    splits: Mapping[str, Brackets],
    *,
    table: str = "table4",
    corpus: str = "grammar_trees",
    position: int = 0,
    **other: Any,
) -> Record:
    """A saved record whose scores are those of its splits; `corpus` is the name of its text."""
    fields: dict[str, Any] = {"run": f"{seed:08x}{position:08x}", "seed": seed, "position": position}
    fields["paper"] = {"ppl": None, "bleu": None, "params": None, "f1": 91.3}
    blank = paper_run(row, table, **fields | other)
    scores: Any = {
        split: {name: blank.scores["dev"][name] for name in ("nll", "ppl")}
        | {"f1_short": 1.0, **of.scores()}
        | {signature_of(name): "F1" for name in SCORES}
        for split, of in splits.items()
    }
    text: Any = blank.corpus | {"name": corpus, **{f"n_{split}": len(of.words) for split, of in splits.items()}}
    made = replace(blank, task=Parsing().facts, scores=scores, corpus=text)
    place = path(results, made)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_brackets(place, made.run, splits)
    made.save(place)
    return made
