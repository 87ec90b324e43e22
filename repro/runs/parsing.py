"""The task of Table 4: from the words of a sentence to its tree, scored by F1 of brackets. Paper: section 6.3."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from repro.corpora.catalogue import Corpus
from repro.corpora.treebanks import TREES, find_trees, open_trees, with_left_out
from repro.decoding.evalb import parse_scores
from repro.decoding.search import Search
from repro.results.record import Named, TaskFacts
from repro.runs.task import task_in_words

if TYPE_CHECKING:
    from repro.data.shards import Prepared
    from repro.runs.scales import Scale

PARSING_SEARCH = Search(beam=21, alpha=0.3, extra=300)  # section 6.3
# Per cent. `f1_short`: of sentences of at most 40 words. `mended`: sentences whose output was no tree.
SCORES = ["f1", "precision", "recall", "exact", "f1_short", "mended"]


@dataclass(frozen=True)
class Parsing:
    """Words in, brackets and tags out; with `silver`, it also learns from trees that a parser made."""

    name: ClassVar = TREES
    command: ClassVar = "parse"
    silver: bool = False
    search: Search = field(default=PARSING_SEARCH, repr=False, compare=False)

    @property
    def facts(self) -> TaskFacts:
        return TaskFacts(name=task_in_words(self), scores=SCORES, search=PARSING_SEARCH.settings)

    def at(self, scale: "Scale") -> "Scale":
        """The scale with the text and the vocabulary that it has for trees."""
        text = scale.trees
        return replace(
            scale,
            corpus=text.corpus,
            grammar=text.sizes,
            vocab_size=text.silver_vocab_size if self.silver else text.vocab_size,
            max_length=text.max_length,
            extra_length=text.extra_length,
        )

    def find(self, corpus: str, data_dir: Path | None) -> Path | None:
        return find_trees(corpus, data_dir, silver=self.silver)

    def open_corpus(self, corpus: str, **where: Any) -> Corpus:
        return open_trees(corpus, silver=self.silver, **where)

    def prepare(self, corpus: Corpus, **how: Any) -> "Prepared":
        """The ids; trees that could not be read count as dropped from train."""
        from repro.corpora.prepare import prepare

        prepared = prepare(corpus, **how)
        return replace(prepared, train=replace(prepared.train, dropped=with_left_out(prepared.train.dropped, corpus)))

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """Both sides are lines of brackets and tags; F1 needs only the number of words."""
        return parse_scores(outputs, references)
