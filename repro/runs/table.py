"""The words of an experiment file: tasks, rows, and what the paper prints for them. Paper: tables 2 to 4.

A task says what is read and how it is scored, and each row may have its own. It decides no result by itself: scores are
made behind the wall (`repro/decoding/`). Nothing heavy is imported before a task is used.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from repro.corpora.catalogue import Corpus, find, open_corpus
from repro.corpora.parallel_text import languages
from repro.corpora.treebanks import TREES, find_trees, open_trees
from repro.decoding.evalb import parse_scores
from repro.decoding.search import PAPER_SEARCH, Search
from repro.model.config import BASE, Hyper, written
from repro.paper import Pair, Training, parser, system
from repro.results.frame import FIGURES, Listed
from repro.results.provenance import system_text
from repro.results.record import BASE as BASE_TABLE
from repro.results.record import FOLDER, PROGRAM, TRANSLATION, Named, PaperNumbers, TaskFacts
from repro.runs.command import guess

if TYPE_CHECKING:
    from repro.runs.scales import Scale

TAKEN = (BASE_TABLE, FIGURES, "claims", "statements", "table3", "readme")  # names of other files there
PARSING_SEARCH = Search(beam=21, alpha=0.3, extra=300)  # section 6.3
# Per cent. `f1_short`: of sentences of at most 40 words. `mended`: sentences whose output was no tree.
SCORES = ["f1", "precision", "recall", "exact", "f1_short", "mended"]


@dataclass(frozen=True)
class Translation:
    """From one language to another, scored by BLEU. Paper: sections 5.1 and 6.1.

    It learns from `times` the generated text that the scale has; dev and test stay as they are.
    """

    command: ClassVar[str] = "translate"  # of `python -m repro`, which uses a finished run
    facts: ClassVar[TaskFacts] = TRANSLATION  # what a record says of the task
    pair: str  # "en-de"
    times: int = 1
    search: Search = field(default=PAPER_SEARCH, repr=False, compare=False)

    def __post_init__(self) -> None:
        languages(self.pair)  # raises for what is no pair

    @property
    def name(self) -> str:
        """What is read, as records, tags and `--pair` have it."""
        return self.pair

    def at(self, scale: "Scale") -> "Scale":
        """The scale itself, or with more text. Raises ValueError where its text is given, not generated."""
        if self.times == 1:
            return scale
        if scale.grammar is None:
            raise ValueError(f"{self.times} times the text of scale {scale.name}: expected a text that is generated.")
        return replace(scale, grammar=replace(scale.grammar, n_train=self.times * scale.grammar.n_train))

    def find(self, corpus: str, data_dir: Path | None) -> Path | None:
        """The folder of its text; None where that is generated."""
        return find(corpus, self.pair, data_dir)

    def open_corpus(self, corpus: str, **where: Any) -> Corpus:
        return open_corpus(corpus, self.pair, **where)

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """By BLEU of two scorers, see `translation_scores`."""
        from repro.decoding.bleu import translation_scores

        return translation_scores(outputs, references, languages(self.pair)[1], are_tokens=in_tokens)


@dataclass(frozen=True)
class Parsing:
    """From the words of a sentence to its tree, by F1 of brackets: Table 4. Paper: section 6.3.

    With `silver`, it also learns from trees that a parser made.
    """

    name: ClassVar[str] = TREES
    command: ClassVar[str] = "parse"
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

    def score(self, outputs: Sequence[str], references: Sequence[str], *, in_tokens: bool) -> Named:
        """Both sides are lines of brackets and tags; F1 needs only the number of words."""
        return parse_scores(outputs, references)


Task = Translation | Parsing


def searching_at(task: Task, scale: "Scale") -> Task:
    """The task with the scale's limit on outputs, which comparisons ignore."""
    extra = task.at(scale).extra_length
    return replace(task, search=replace(task.search, extra=extra)) if extra is not None else task


# Rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Paper:
    """What the paper prints for a row, else None: scores of dev (Table 3) or test (Table 2), millions of parameters."""

    ppl: float | None = None
    bleu: float | None = None
    params: float | None = None
    f1: float | None = None  # of Table 4, on section 23

    @property
    def numbers(self) -> PaperNumbers:
        """The numbers as a record keeps them."""
        numbers: PaperNumbers = {"ppl": self.ppl, "bleu": self.bleu, "params": self.params}
        return numbers if self.f1 is None else {**numbers, "f1": self.f1}


def printed_f1(name: str, training: Training) -> Paper:
    """What Table 4 prints for a parser that learned from this text."""
    return Paper(f1=parser(name, training).f1)


def printed(name: str, pair: Pair) -> Paper:
    """What Table 2 prints for a system, on the test set of a language pair."""
    return Paper(bleu=system(name).bleu[pair])


@dataclass(frozen=True)
class Row:
    """One line of a table: a function from the base to the row, and the paper's numbers for it."""

    name: str
    change: Callable[[Hyper], Hyper]
    paper: Paper
    task: Task | None = None  # None: translation between the languages that were asked for
    system: Any = None  # made from (hyper, vocabulary size): a class, or a partial of one; None: the Transformer

    def at(self, base: Hyper, *, equal_updates: bool = False) -> Hyper:
        """The row's hyper-parameters with this base; with `equal_updates`, it makes as many updates as the base.

        Raises ValueError, which names the row, for an impossible one.
        """
        try:
            hyper = self.change(base)
        except ValueError as error:
            raise ValueError(f"Row {self.name}: {error}") from error
        return replace(hyper, steps=base.steps) if equal_updates else hyper


BASE_ROW = Row(BASE_TABLE, lambda base: base, Paper(ppl=4.92, bleu=25.8, params=65))
"""The base model belongs to every table of translations and is trained once for all. Paper: Table 3, first line."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One experiment file; or some of the rows that a program runs, from the `first` place on."""

    name: str
    rows: Sequence[Row]
    title: str
    file: Path | None = None
    first: int = 0  # position of the first of `rows`: rows of a program come after those it ran before


def rows_of(
    tables: Sequence[Table], base: Hyper, chosen: Sequence[str], task: Task, *, equal_updates: bool = False
) -> list[tuple[str, int, Row, Hyper]]:
    """The base and the rows of all tables: table, position in it (the base row has -1), row, hyper-parameters.

    `chosen` names the rows to keep, all of them if empty. Raises ValueError for a name that no table has, for tables
    and rows that cannot be told apart, and for identical rows. `task` is that of rows without their own.
    """
    _refuse_names(tables)
    placed = _placed(tables)
    known = [row.name for _, _, row in placed]
    for name in chosen:
        if name not in known:
            of = ", ".join(table.name for table in tables)
            raise ValueError(f"Unknown row {name!r} of {of}; expected some of {', '.join(known)}{guess(name, known)}")
    found = []
    seen: dict[tuple[Hyper, Task, str], str] = {}  # of all rows: two that are the same would be the same run
    for of, i, row in placed:
        try:
            hyper, system = row.at(base, equal_updates=equal_updates), system_text(row.system)
        except ValueError:
            if not chosen or row.name in chosen:
                raise
            continue  # the row was not chosen
        who, decides = f"row {row.name!r} of {of}", (hyper, row.task or task, system)
        if other := seen.get(decides):
            raise ValueError(f"{who[0].upper()}{who[1:]} is {other} again: at this scale they are one. Leave it out.")
        seen[decides] = who
        if not chosen or row.name in chosen:
            found.append((of, i, row, hyper))
    return found


def _refuse_names(tables: Sequence[Table]) -> None:
    """Raise ValueError for bad names: a table is a folder, and a row is found by its table and its name."""
    for table in tables:
        if not re.fullmatch(FOLDER, table.name) or table.name.lower() in TAKEN:
            raise ValueError(
                f"Table {table.name!r}: expected a name for a folder, up to 80 letters, digits and . _ = -, and none "
                f"of {', '.join(TAKEN)}. Rename TABLE and the file."
            )
        if table.file and (table.name == PROGRAM or table.file.stem != table.name):
            raise ValueError(
                f"{table.file.name}: expected TABLE to be what the file is called, and not {PROGRAM!r}, of programs; "
                f"got {table.name!r}. Rename one of them."
            )
        names = [row.name for row in table.rows]
        for name in names:
            if not name.strip() or not name.isprintable() or names.count(name) > 1 or name == BASE_ROW.name:
                raise ValueError(
                    f"Table {table.name}: expected a name of its own for each row, in one line, and {BASE_ROW.name!r} "
                    f"for none, got {name!r}. Rename the row."
                )


def listed(tables: Sequence[Table], base: Hyper, *, equal_updates: bool = False) -> dict[tuple[str, str], Listed]:
    """The base and the rows of all tables as `rows.json` keeps them: position, printed numbers, what they change.

    `base` is that of the scale.
    """
    found = {}
    for of, position, row in _placed(tables):
        whole, here = _made(row, BASE), _made(row, base, equal_updates=equal_updates)
        changes = whole and {name: value for name, value in whole.items() if value != getattr(BASE, name)}
        found[of, row.name] = Listed(position, row.paper.numbers, changes, here and written(here))
    return found


def _made(row: Row, base: Hyper, *, equal_updates: bool = False) -> dict[str, Any] | None:
    """The row's hyper-parameters; None where this base cannot make them: only a sweep that asks for the row stops."""
    try:
        return vars(row.at(base, equal_updates=equal_updates))
    except ValueError:
        return None


def _placed(tables: Sequence[Table]) -> list[tuple[str, int, Row]]:
    """Table, position and row. The base comes first, at -1; it is left out where no row translates."""
    of_tables = [(table.name, i, row) for table in tables for i, row in enumerate(table.rows, start=table.first)]
    translate = not of_tables or any(row.task is None or row.task.facts == TRANSLATION for _, _, row in of_tables)
    return [*([(BASE_TABLE, -1, BASE_ROW)] if translate else []), *of_tables]
