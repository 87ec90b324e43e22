"""Translations, counts and brackets of runs that were never made, as they stand beside records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import paper_run

from repro.decoding.bleu import translation_scores
from repro.results.record import Record, path, signature_of
from repro.results.sentences import Brackets, Translated, write_brackets, write_sentences
from repro.runs.table import SCORES, Parsing

REFERENCES = {
    "dev": ["der Hund läuft heute sehr schnell nach Hause", "die Katze schläft auf dem Sofa", "das ist gut"],
    "test": ["ein Mann kauft drei rote Äpfel auf dem Markt", "sie lesen ein Buch"],
}


def hypotheses(seed: int, split: str) -> list[str]:
    """The references with a word missing, another one for each seed."""
    lines = [line.split() for line in REFERENCES[split]]
    return [
        " ".join(word for i, word in enumerate(line) if i != (seed + n) % len(line)) for n, line in enumerate(lines)
    ]


def splits(seed: int, *, source: Sequence[int] | None = None, is_open: bool = False) -> dict[str, Translated]:
    """Dev and test of a run; `source` and `is_open` are those of `Translated`, the former cut to the text."""
    return {
        split: Translated(
            hypotheses(seed, split),
            references,
            "en-de",
            in_tokens=False,
            source=None if source is None else source[: len(references)],
            is_open=is_open,
        )
        for split, references in REFERENCES.items()
    }


def with_scores(record: Record, of: dict[str, Translated] | None = None) -> Record:
    """The record with the scores that its translations are worth, and as many sentences as they are."""
    scores: Any = {}
    for split, found in (of or splits(record.seed)).items():
        own = translation_scores(found.hypotheses, found.references, found.pair[-2:], are_tokens=found.in_tokens)
        numbers = {name: value for name, value in own.items() if isinstance(value, float)}
        scores[split] = {**record.scores[split], **numbers}  # type: ignore[literal-required]
    sizes: Any = {"n_dev": len(REFERENCES["dev"]), "n_test": len(REFERENCES["test"])}
    return replace(record, scores=scores, corpus={**record.corpus, **sizes})


def leave(results: Path, records: Sequence[Record]) -> None:
    """Write records with what belongs beside them."""
    for record in records:
        write_sentences(path(results, record), record.run, splits(record.seed))
        record.save(path(results, record))


def ladder_run(row: str, seed: int, results: Path, *, places: bool = True) -> Record:
    """A record of a system of its own, with what belongs beside it."""
    made = splits(seed, source=[5, 3, 9] if places else None)
    record = with_scores(
        paper_run(row, "ladder", seed=seed, run=f"{seed:016x}", scale="lab", system=f"rivals.{row}", position=seed % 2)
    )
    record.save(path(results, record))
    write_sentences(path(results, record), record.run, made)
    return record


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
