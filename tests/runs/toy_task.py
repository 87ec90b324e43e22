"""A task that is none of the package's: lines are repeated as they are, and what counts is how many come out whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.corpora.catalogue import Corpus
from repro.data.shards import Prepared
from repro.decoding.search import Search
from repro.experiment import Translation
from repro.results.task import Named, TaskFacts
from repro.runs.scales import Scale
from repro.runs.task import task_in_words

SEARCH, TEXT = Search(2, 0.3, 7), Translation("en-de")


@dataclass(frozen=True)
class Whole:
    """Reads a language pair as translation does, and scores exact matches of its first `words` words."""

    words: int
    name: str = "whole"
    search: Search = SEARCH
    text: Translation = TEXT

    @property
    def command(self) -> str:
        return "translate"

    @property
    def facts(self) -> TaskFacts:
        return {"name": task_in_words(self), "scores": ["exact", "empty"], "search": self.search.settings}

    def at(self, scale: Scale) -> Scale:
        return scale

    def find(self, corpus: str, data_dir: Path | None) -> Path | None:
        return self.text.find(corpus, data_dir)

    def open_corpus(self, corpus: str, **where: Any) -> Corpus:
        return self.text.open_corpus(corpus, **where)

    def prepare(self, corpus: Corpus, **how: Any) -> Prepared:
        return self.text.prepare(corpus, **how)

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        first: Callable[[str], list[str]] = lambda line: line.split()[: self.words]  # noqa: E731
        same = sum(first(one) == first(other) for one, other in zip(outputs, references, strict=True))
        scored = {"exact": 100 * same / len(references), "exact_signature": f"first:{self.words}"}
        return {**scored, "empty": None, "empty_signature": None}
