"""A named corpus as a LightningDataModule for any `Trainer`, the one that runs train on (`docs/lightning.md`).

A file of its own: it imports Lightning, and what preparing imports decides which runs are old.
"""

from pathlib import Path
from typing import Any

from repro.corpora.catalogue import GrammarSizes, open_corpus
from repro.corpora.prepare import prepare
from repro.data.datamodule import TranslationData
from repro.data.vocabulary import Subwords


def corpus_data(
    corpus: str,
    pair: str,
    subwords: Subwords,
    *,
    cache: Path | str = "cache",
    data_dir: Path | str | None = None,
    sizes: GrammarSizes | None = None,
    max_length: int = 128,
    **plan: Any,
) -> TranslationData:
    """The corpus, prepared once: one of several processes prepares it, and the others wait and read its cache.

    Arguments are those of `open_corpus` and `prepare`; `plan` is for `TranslationData`, `budget` and `seed` first.
    """
    cache, data_dir = Path(cache), Path(data_dir) if data_dir else None
    opened = open_corpus(corpus, pair, data_dir=data_dir, cache=cache, sizes=sizes)
    return TranslationData.from_prepared(prepare(opened, subwords=subwords, cache=cache, max_length=max_length), **plan)
