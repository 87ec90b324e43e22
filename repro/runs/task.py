"""What is read and what is scored, as a value. Paper: section 5.1, and section 6.3, where it is parsing.

A task is a frozen dataclass at the top of a module. It is passed as a value, never by a name, and each row of a table
may have its own. Nothing heavy is imported before a task is used, so that experiment files can name one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from repro.corpora.catalogue import Corpus, find, open_corpus
from repro.corpora.parallel_text import languages
from repro.corpora.treebanks import TREES, find_trees, open_trees, with_left_out
from repro.decoding.evalb import parse_scores
from repro.decoding.search import PAPER_SEARCH, Scorer, Search
from repro.results.record import TRANSLATION, Named, TaskFacts

if TYPE_CHECKING:
    from repro.data.shards import Prepared
    from repro.runs.scales import Scale

PARSING_SEARCH = Search(beam=21, alpha=0.3, extra=300)  # section 6.3
# Per cent. `f1_short`: of sentences of at most 40 words. `mended`: sentences whose output was no tree.
SCORES = ["f1", "precision", "recall", "exact", "f1_short", "mended"]


class Task(Scorer, Protocol):
    """What training, search and scoring ask of a task. `score` gives the scores that the facts name.

    Tasks decide no result by themselves: scores are made behind the wall (`repro/decoding/`).
    """

    @property
    def name(self) -> str: ...  # of what is read, as records, tags and `--pair` have it: "en-de"
    @property
    def command(self) -> str: ...  # of `python -m repro`, which uses a finished run
    @property
    def facts(self) -> TaskFacts: ...  # what a record says of the task
    def at(self, scale: "Scale") -> "Scale": ...  # as this task reads it: which text, in which tokens
    def find(self, corpus: str, data_dir: Path | None) -> Path | None: ...  # its folder; None: it is generated
    def open_corpus(self, corpus: str, **where: Any) -> Corpus: ...  # as `repro.corpora.catalogue.open_corpus`
    def prepare(self, corpus: Corpus, **how: Any) -> "Prepared": ...  # as `repro.corpora.prepare.prepare`


@dataclass(frozen=True)
class Translation:
    """From one language to another, scored by BLEU. Paper: sections 5.1 and 6.1.

    It learns from `times` the generated text that the scale has; dev and test stay as they are.
    """

    command: ClassVar = "translate"
    facts: ClassVar = TRANSLATION
    pair: str  # "en-de"
    times: int = 1
    search: Search = field(default=PAPER_SEARCH, repr=False, compare=False)

    def __post_init__(self) -> None:
        languages(self.pair)  # raises for what is no pair

    @property
    def name(self) -> str:
        return self.pair

    def at(self, scale: "Scale") -> "Scale":
        """The scale itself, or with more text. Raises ValueError where its text is given, not generated."""
        if self.times == 1:
            return scale
        if scale.grammar is None:
            raise ValueError(
                f"{self.times} times the text of scale {scale.name}: expected a scale whose text is generated, such as "
                "laptop: a given text has no more."
            )
        return replace(scale, grammar=replace(scale.grammar, n_train=self.times * scale.grammar.n_train))

    def find(self, corpus: str, data_dir: Path | None) -> Path | None:
        return find(corpus, self.pair, data_dir)

    def open_corpus(self, corpus: str, **where: Any) -> Corpus:
        return open_corpus(corpus, self.pair, **where)

    def prepare(self, corpus: Corpus, **how: Any) -> "Prepared":
        from repro.corpora.prepare import prepare

        return prepare(corpus, **how)

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """By BLEU of two scorers, see `translation_scores`."""
        from repro.decoding.bleu import translation_scores

        return translation_scores(outputs, references, languages(self.pair)[1], are_tokens=in_tokens)


@dataclass(frozen=True)
class Parsing:
    """From the words of a sentence to its tree, by F1 of brackets: Table 4. Paper: section 6.3.

    With `silver`, it also learns from trees that a parser made.
    """

    name: ClassVar = TREES
    command: ClassVar = "parse"
    silver: bool = False
    search: Search = field(default=PARSING_SEARCH, repr=False, compare=False)

    @property
    def facts(self) -> TaskFacts:
        name = f"repro.runs.parsing.{self!r}"  # as published records have it, whichever file the class is in
        return TaskFacts(name=name, scores=SCORES, search=PARSING_SEARCH.settings)

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


def searching_at(task: Task, scale: "Scale") -> Task:
    """The task with the scale's limit on outputs, which comparisons ignore."""
    extra, ours = task.at(scale).extra_length, cast("Any", task)
    return replace(ours, search=replace(task.search, extra=extra)) if extra is not None else task
