"""What is read and what is scored, as a value. Paper: section 5.1, and section 6.3, where it is parsing.

A task is a frozen dataclass at the top of a module. It is passed as a value, never by a name, and each row of a table
may have its own. Nothing heavy is imported before a task is used, so that experiment files can name one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from repro.corpora.catalogue import Corpus, find, open_corpus
from repro.corpora.pair import languages
from repro.decoding.search import PAPER_SEARCH, Scorer, Search
from repro.results.task import TRANSLATION, Named, TaskFacts

if TYPE_CHECKING:
    from repro.data.shards import Prepared
    from repro.runs.scales import Scale


class Task(Scorer, Protocol):
    """What training, search and scoring ask of a task. `score` gives the scores that the facts name.

    Our own tasks decide no result by themselves: scores are made behind the wall (`repro/decoding/`).
    """

    @property
    def name(self) -> str:
        """The name of what is read, as records, tags and `--pair` have it: "en-de"."""
        ...

    @property
    def command(self) -> str:
        """The command of `python -m repro` that uses a finished run."""
        ...

    @property
    def facts(self) -> TaskFacts:
        """What a record says of the task."""
        ...

    def at(self, scale: "Scale") -> "Scale":
        """The scale as this task reads it: which of its texts, in which tokens, of which length."""
        ...

    def find(self, corpus: str, data_dir: Path | None) -> Path | None:
        """The folder of its text, None where the text is generated; none of it is read."""
        ...

    def open_corpus(self, corpus: str, **where: Any) -> Corpus:
        """Its text, found and recognised; `where` is as `repro.corpora.catalogue.open_corpus` takes it."""
        ...

    def prepare(self, corpus: Corpus, **how: Any) -> "Prepared":
        """Its text as ids; `how` is as `repro.corpora.prepare.prepare` takes it."""
        ...


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


def searching_at(task: Any, scale: "Scale") -> Task:
    """The task with the scale's limit on outputs, if its search is a field that comparisons ignore."""
    extra, free = task.at(scale).extra_length, "search" in {one.name for one in fields(task) if not one.compare}
    return replace(task, search=replace(task.search, extra=extra)) if free and extra is not None else task


def task_in_words(task: object) -> str:
    """A task as its facts name it: the module of its class, and its fields, so that no two tasks share a name.

    Raises ValueError for a class that cannot be imported again.
    """
    kind = type(task)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        raise ValueError(
            f"Task {kind.__qualname__}: expected a class at the top of a module that can be imported, got one of "
            f"{kind.__module__}. Move it to a file of its own."
        )
    return f"{kind.__module__}.{task!r}"
