"""What a run computes, from prepared text to scores. All that decides a result is here or imported from here.

`repro/results/provenance.py` follows the imports of this file and of `repro/data/prepare.py` to say which code made
a number; so nothing here writes a record, a table or to the tracker. Paper: sections 5 and 6.1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from repro.data.batch import Batch
from repro.data.batching import BATCH_BY, RECORDED
from repro.data.datamodule import DevBatches, Translation
from repro.data.shards import Prepared, Split
from repro.decoding import backend as backends
from repro.decoding.bleu import Score, published_protocol, published_score, sacrebleu_score
from repro.model.config import Hyper, written
from repro.model.transformer import Transformer
from repro.results.search import PAPER_SEARCH, Search
from repro.training import cpu_tuning, loop
from repro.training.module import TranslationModule


class Scored(NamedTuple):
    """One split, translated and scored."""

    nll: float  # nats per word-piece, unsmoothed
    ppl: float  # exp(nll)
    hypotheses: list[str]  # in the order of the split
    plain: Score  # sacreBLEU
    published: Score | None  # as the paper's authors took it, where that is defined


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The numbers and the text that a result is computed from."""

    prepared: Prepared
    target: str  # language
    in_tokens: bool  # the text is Moses tokens already
    hyper: Hyper
    seed: int
    batch_tokens: int  # of each side in one update
    batch_by: Literal["padded_tokens", "tokens"]
    devices: int
    accumulate: int  # micro-batches per update and device
    threads: int  # of each process, for the operations of PyTorch on a CPU
    precision: loop.Precision
    backend: backends.Name
    search: Search = PAPER_SEARCH

    @property
    def shares(self) -> int:
        """Micro-batches of an update, over all processes."""
        return self.devices * self.accumulate

    @property
    def decides(self) -> dict[str, Any]:
        """All that decides the result beside the code and the text itself, by fields."""
        return {
            **{f"hyper.{name}": value for name, value in written(vars(self.hyper)).items()},
            "seed": self.seed,
            "tokenizer": self.prepared.tokenizer.sha256,
            "data": self.prepared.data_hash,
            "in_tokens": self.in_tokens,  # how it is scored
            "batch_tokens": self.batch_tokens,
            "fill": RECORDED[self.batch_by],
            "shares": self.shares,  # each has its own dropout
            "threads": self.threads,  # sums are made in other orders
            "precision": self.precision,
            **self.search.settings,
            "engine": self.backend,
        }

    def tune(self) -> tuple[str, ...]:
        """Set this process up for the work; returns the names of the settings made."""
        made = cpu_tuning.tune(self.batch_tokens * self.hyper.d_model**2)
        torch.set_num_threads(self.threads)
        return made

    def module(self) -> TranslationModule:
        """The model with its first weights."""
        return TranslationModule(self.hyper, self.prepared.tokenizer.size, self.seed)

    def data(self) -> Translation:
        """The batches, in the order of the plan."""
        return Translation(
            (self.prepared.train.source, self.prepared.train.target),
            (self.prepared.dev.source, self.prepared.dev.target),
            budget=self.batch_tokens,
            batch_by=BATCH_BY[self.batch_by],
            data_hash=self.prepared.data_hash,
            seed=self.seed,
            accumulate=self.accumulate,
            packed=torch.cuda.is_available(),
        )

    def train(self, module: TranslationModule, **options: Any) -> loop.Fitted:
        """Train to the end, or until asked to stop; `options` are those of `fit.fit` that decide nothing."""
        return loop.fit(
            module,
            self.data(),
            devices=self.devices,
            precision=self.precision,
            **options,
        )

    def averaged(self, checkpoints: Path, run: str) -> Mapping[str, Tensor]:
        """The weights that are scored. Paper: section 6.1."""
        return loop.averaged(checkpoints, run, self.hyper.averaged_steps)

    def opened(self, model: Transformer) -> Any:
        """What translates and scores, as a context."""
        return backends.opened(self.backend, model, bf16=self.precision == "bf16")

    def score(self, model: backends.Backend, split: Split, *, between: Callable[[int], None]) -> Scored:
        """Perplexity and both BLEU scores of one split.

        `between` is called with the number of sentences translated, 0 of them before each batch that is only read; what
        it raises ends the work.
        """
        budget = self.batch_tokens // self.accumulate  # what fits in training fits here
        batches = DevBatches(split.source, split.target, budget=budget, rank=0, world=1)

        def some() -> Iterator[Batch]:
            for i in range(len(batches)):
                between(0)
                yield batches[i]

        nll = model.mean_nll(some())
        found = model.translate(split.source, self.search, between=between)
        hypotheses = [self.prepared.tokenizer.decode(line) for line in found]
        plain, published = self.bleu(hypotheses, split.references)
        return Scored(
            nll=nll,
            ppl=torch.tensor(nll, dtype=torch.float64).exp().item(),
            hypotheses=hypotheses,
            plain=plain,
            published=published,
        )

    def bleu(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[Score, Score | None]:
        """By sacreBLEU, and as the paper's authors took it, where that is defined."""
        plain = sacrebleu_score(hypotheses, references, tokens_of=self.target if self.in_tokens else None)
        if published_protocol(self.target) is not None:
            return plain, None
        return plain, published_score(hypotheses, references, self.target, are_tokens=self.in_tokens)
