"""A corpus by its name as a LightningDataModule, for any `Trainer` (`docs/lightning.md`)."""

from functools import cached_property
from pathlib import Path
from typing import Any

import lightning as L

from repro.corpora.catalogue import GrammarSizes, open_corpus
from repro.corpora.prepare import prepare
from repro.data.batching import BatchBy, by_padded_tokens
from repro.data.datamodule import TranslationData
from repro.data.shards import Prepared
from repro.data.vocabulary import Subwords


class CorpusData(TranslationData):
    """One process prepares the text, each opens it.

    `setup` does both where no trainer did. Arguments are those of `open_corpus`, `prepare` and `TranslationData`.
    """

    def __init__(
        self,
        corpus: str,
        pair: str,
        subwords: Subwords,
        *,
        budget: int,
        seed: int,
        cache: Path | str = "cache",
        data_dir: Path | str | None = None,
        sizes: GrammarSizes | None = None,
        max_length: int = 128,
        batch_by: BatchBy = by_padded_tokens,
        accumulate: int = 1,
        workers: int = 0,
        packed: bool = False,
    ) -> None:
        L.LightningDataModule.__init__(self)  # there are no sides yet
        self._choose(budget=budget, seed=seed, batch_by=batch_by, accumulate=accumulate, workers=workers, packed=packed)
        self.corpus, self.pair, self.subwords, self.max_length = corpus, pair, subwords, max_length
        self.sizes = sizes
        self.cache = Path(cache).absolute()  # so that a program may change its folder
        self.data_dir = Path(data_dir).absolute() if data_dir else None

    def prepare_data(self) -> None:
        """Leave the ids in the cache; what is there already is used."""
        self._prepare()

    def setup(self, stage: str | None = None) -> None:
        """Open what the cache holds, once."""
        super().setup(stage)
        assert self.prepared

    @cached_property
    def prepared(self) -> Prepared:
        """The text as ids; it is opened when something of it is first asked for, with a trainer or without."""
        return self._prepare()

    def __getattr__(self, name: str) -> Any:
        """Its sides and their hash, of which the base class has fields."""
        if name in ("train", "dev", "test"):
            split = getattr(self.prepared, name)
            return split.source, split.target
        if name == "data_hash":
            return self.prepared.data_hash
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def vocab_size(self) -> int:
        """Tokens of both languages: what a model needs to know before a trainer is there."""
        return self.prepared.tokenizer.size

    def _prepare(self) -> Prepared:
        opened = open_corpus(self.corpus, self.pair, data_dir=self.data_dir, cache=self.cache, sizes=self.sizes)
        return prepare(opened, subwords=self.subwords, cache=self.cache, max_length=self.max_length)
