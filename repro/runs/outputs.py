"""The outputs of a run beside its record: kept when it is made, and scored again before they are published."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repro.corpora.catalogue import CORPORA, Corpus, GrammarSizes, open_corpus
from repro.results import artifacts
from repro.results.artifacts import are_of, read_further
from repro.results.brackets import Brackets, has_brackets, write_brackets
from repro.results.parts import SPLIT
from repro.results.record import Record, path
from repro.results.sentences import (
    SAME_BLEU,
    SMOOTHED,
    NgramCounts,
    Translated,
    bleu,
    has_sentences,
    read_hypotheses,
    read_places,
    write_sentences,
)
from repro.results.task import SPLITS, Named, number

if TYPE_CHECKING:
    from repro.data.shards import Split
    from repro.runs.run_dir import RunDir


def keep_outputs(run: "RunDir", record: Record, results: Path) -> None:
    """Save the run's translations beside its record under `results`, with what its BLEU is computed from.

    For a run that parses, save the counts that its F1 is made of. Where the folder of the run no longer has its
    outputs, nothing is kept there, and publishing says so.
    """
    place = path(results, record)
    hypotheses: dict[str, Path] = {split: run.folder / f"{split}.hyp" for split in SPLITS}
    kept = [text for text in artifacts.texts(place) if text not in SPLITS]
    if not all(file.exists() for file in hypotheses.values()):
        artifacts.drop(place, kept)
    elif has_brackets(record):
        if not are_of(place, record.run):
            texts = _held_out(run)
            found = {split: brackets_of(_lines(file), texts[split].references) for split, file in hypotheses.items()}
            write_brackets(place, record.run, found)
    elif not has_sentences(record):
        artifacts.drop(place, kept)
    elif not are_of(place, record.run):
        texts, known = _held_out(run), CORPORA.get(run.corpus.name)
        is_open = known is not None and known.is_generated
        splits: dict[str, Translated] = {
            split: Translated(
                _lines(file),
                texts[split].references,
                record.pair,
                in_tokens=run.corpus.in_tokens,
                source=texts[split].source.lengths.tolist() if split == SPLIT else None,
                is_open=is_open,
            )
            for split, file in hypotheses.items()
        }
        write_sentences(place, record.run, splits)


def brackets_of(outputs: Sequence[str], references: Sequence[str]) -> Brackets:
    """The counts of a parser's outputs, sentence by sentence; both sides are lines of brackets and tags.

    This is not part of the task: what a run shows besides its scores must not make it a different run.
    """
    import numpy as np

    from repro.decoding.evalb import count_brackets, n_leaves, n_words, tree_of

    gold = [tree_of(line, n_leaves(line)).tree for line in references]
    found = [tree_of(line, len(tree.leaves)) for line, tree in zip(outputs, gold, strict=True)]
    counts = [count_brackets(*pair) for pair in zip(gold, (one.tree for one in found), strict=True)]
    kinds = {kind for one in found for kind in one.kinds}
    return Brackets(
        np.array([n_words(tree) for tree in gold], np.int64),
        np.array([one.found for one in counts], np.int64),
        np.array([one.gold for one in counts], np.int64),
        np.array([one.matched for one in counts], np.int64),
        {kind: np.array([one.kinds[kind] for one in found], np.int64) for kind in kinds},
    )


def rescored(record: Record, results: Path, cache: Path) -> str | None:
    """Why the translations beside a record under `results` do not score what it says; None where they do.

    Also None where its text is not at hand: then the counts that were kept stand in for it.
    """
    if (corpus := at_hand(record, cache)) is None:
        return None
    for split in SPLITS:
        text = corpus.dev if split == "dev" else corpus.test
        references = [target for _, target in text.pairs()]
        hypotheses = read_hypotheses(path(results, record), split)
        if len(hypotheses) != len(references):
            return f"{split} has {len(hypotheses):,} translations of {len(references):,} sentences"
        places = read_places(results, record, split)
        found = Translated(hypotheses, references, record.pair, in_tokens=corpus.in_tokens)
        if places and any(map(_differ, places.thirds, found.thirds)):
            return f"the counts of its translations of {split}, by thirds, are not those that were kept"
        if wrong := _unlike(found, record.scores[split], split, "the record says"):
            return wrong
    return _further_rescored(record, results, corpus)


def _further_rescored(record: Record, results: Path, corpus: Corpus) -> str | None:
    """As `rescored`, of the other test sets that lie here and that the run was scored on."""
    tests = read_further(path(results, record), record.run)
    for test in (name for name in tests if name in corpus.further):
        hypotheses, scores = tests[test].hypotheses, tests[test].scores
        references = [target for _, target in corpus.further[test].pairs()]
        if len(hypotheses) != len(references):
            return f"{test} has {len(hypotheses):,} translations of {len(references):,} sentences"
        found = Translated(hypotheses, references, record.pair, in_tokens=corpus.in_tokens)
        if wrong := _unlike(found, scores, test, "their file says"):
            return wrong
    return None


def _unlike(found: Translated, scores: Named, text: str, stated: str) -> str | None:
    """In words, the first score of a text that differs from what is stated; None if none does."""
    for name, counts in found.scorers.items():
        scored, again = number(scores, name), bleu(counts.summands.sum(0), smoothed=SMOOTHED[name]).item()
        if scored is None or abs(scored - again) > SAME_BLEU:
            return f"its translations of {text} score {name} {again:.4f}, but {stated} {scored}"
    return None


def at_hand(record: Record, cache: Path) -> Corpus | None:
    """The text that a run was scored on, as lines, generated or found as for a run; None if it is not here."""
    of = record.corpus
    if of["name"] not in CORPORA or not CORPORA[of["name"]].folders:  # text of one's own has no known place
        return None
    n_train = of["n_train"] + sum(of["dropped"].values())
    sizes = GrammarSizes(n_train=n_train, n_dev=of["n_dev"], n_test=of["n_test"])
    try:
        corpus = open_corpus(of["name"], record.pair, data_dir=None, cache=cache, sizes=sizes)
    except FileNotFoundError:
        return None
    # text that came in sub-words is not scored as it stands
    return corpus if corpus.sha256 == of["sha256"] and corpus.vocabulary is None else None


def _differ(one: NgramCounts, other: NgramCounts) -> bool:
    return one.summands.tolist() != other.summands.tolist()


def _held_out(run: "RunDir") -> "dict[str, Split]":
    return {"dev": run.prepared.dev, "test": run.prepared.test}


def _lines(file: Path) -> list[str]:
    return file.read_bytes().decode().split("\n")[:-1]
