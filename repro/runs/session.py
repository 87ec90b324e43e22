"""What a command makes runs with: its scale and options, and the texts that they read, opened once."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from repro.corpora.catalogue import CORPORA
from repro.results.record import short
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.task import Task, Translation

if TYPE_CHECKING:
    from repro.corpora.catalogue import Corpus
    from repro.data.shards import Prepared
    from repro.runs.run_dir import RunDir

Tell = Callable[[str], None]


class Session:
    """The scale and the options of a command, with the texts that its runs read."""

    def __init__(self, scale: Scale, options: Options, whole: "Sequence[RunDir]") -> None:
        self.scale, self.options = scale, options
        self.whole = whole  # runs of the whole sweep, of which this command may make a shard
        self._tasks = list(dict.fromkeys(run.task for run in whole))
        self.texts: dict[Task, tuple[Corpus, Prepared]] = {}

    def open_texts(self, tasks: Sequence[Task], tell: Tell) -> None:
        """Open and prepare the texts of these tasks, and rename the scale if the text is one's own."""
        for task in tasks:
            self.texts[task] = self._prepare(task, tell)
        self.scale = self._named_after_text()

    def _open(self, task: Task) -> "Corpus":
        scale = task.at(self.scale)
        where = {"data_dir": self.options.data_dir, "cache": self.options.cache_dir}
        return task.open_corpus(scale.corpus, sizes=scale.grammar, **where)

    def _prepare(self, task: Task, tell: Tell) -> "tuple[Corpus, Prepared]":
        from repro.results.comparable import repeated

        options, scale, corpus = self.options, task.at(self.scale), self._open(task)
        prepared = task.prepare(
            corpus,
            subwords=corpus.subwords(scale.subwords(task.name), asked=options.vocab_size),
            cache=options.cache_dir,
            max_length=scale.max_length,
            rules=scale.rules,
            tell=tell,
        )
        sizes = ", ".join(f"{name} {len(getattr(prepared, name)):,}" for name in ("train", "dev", "test"))
        dropped = f"; left out: {prepared.train.dropped}" if prepared.train.dropped else ""
        tell(
            f"{corpus.name} {corpus.pair}: {sizes} pairs, {prepared.tokenizer.size:,} tokens, "
            f"prepared in {prepared.seconds:.1f} s{dropped}"
        )
        for sentence in (*repeated(prepared.repeats), *prepared.notes):
            tell(f"Note on {corpus.name} {corpus.pair}: {sentence}")
        return corpus, prepared

    def _named_after_text(self) -> Scale:
        """The scale; for a text of one's own, a hash of text and vocabulary in its name tells such texts apart.

        The text is one of the whole sweep, so that all shards put their records into one folder.
        """
        if CORPORA[self.scale.corpus].folders:
            return self.scale
        usual = Translation(self.options.pair)
        namesake = usual if usual in self._tasks else self._tasks[0]
        corpus = self.texts[namesake][0] if namesake in self.texts else self._open(namesake)
        known_by = corpus.sha256
        if corpus.vocabulary:
            known_by = hashlib.sha256(known_by.encode() + corpus.vocabulary.read_bytes()).hexdigest()
        elif corpus.pieces or corpus.in_tokens:
            known_by = hashlib.sha256(f"{known_by} {corpus.pieces} {corpus.in_tokens}".encode()).hexdigest()
        return replace(self.scale, name=short(f"{self.scale.name}-{known_by[:8]}"))

    def opened(self, run: "RunDir") -> "RunDir":
        """The run with its text, which is open."""
        return run.opened(*self.texts[run.task], self.scale.name)
