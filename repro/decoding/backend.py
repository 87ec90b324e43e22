"""What translates and scores: this suite's own search, or CTranslate2 with the same weights."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import torch

from repro.data.batch import Batch
from repro.data.shards import Side
from repro.decoding import ctranslate
from repro.decoding.search import PAPER_SEARCH, Search
from repro.decoding.translate import TokenScores, score_tokens, translate
from repro.model.bfloat16 import bfloat16_products
from repro.model.protocol import TranslationSystem

Name = Literal["torch", "ctranslate2", "ctranslate2-int8"]
NAMES: tuple[Name, ...] = get_args(Name)
COMPUTE: dict[Name, str] = {"ctranslate2": "float32", "ctranslate2-int8": "int8"}


class Backend(Protocol):
    """A trained model, ready to score and to translate."""

    def score_tokens(self, batches: Iterable[Batch]) -> TokenScores:
        """How well it predicts the next token of given translations (teacher forcing)."""
        ...

    def translate(
        self,
        source: Side,
        search: Search = PAPER_SEARCH,
        *,
        between: Callable[[int], None] = lambda done: None,
    ) -> list[Sequence[int]]:
        """The best hypothesis of each sentence as ids without the end symbol, in the order of `source`."""
        ...


@contextmanager
def opened(name: Name, model: TranslationSystem, *, bf16: bool = False) -> Iterator[Backend]:
    """The backend of that name with the weights of `model`; with `bf16` our own one makes its products in bfloat16.

    Our own one moves the model to the GPU, if there is one: Lightning leaves it on the CPU when training ends.
    Raises ImportError if CTranslate2 is asked for and not installed.
    """
    if name == "torch":
        yield _Own(model.to(_device()), bf16)
        return
    with tempfile.TemporaryDirectory(prefix="ctranslate2-") as folder:
        ctranslate.export(model, Path(folder))
        yield _CTranslate2(ctranslate.load(Path(folder), compute_type=COMPUTE[name]))


def _device() -> torch.device:
    """The device of the search: CUDA or the CPU, as for training; no other kind of GPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class _Own:
    model: TranslationSystem
    bf16: bool

    def score_tokens(self, batches: Iterable[Batch]) -> TokenScores:
        with self._precision():
            return score_tokens(self.model, batches)

    def translate(self, source: Side, search: Search = PAPER_SEARCH, **options: Any) -> list[Sequence[int]]:
        with self._precision():
            return translate(self.model, source, search, **options)

    @contextmanager
    def _precision(self) -> Iterator[None]:
        device = self.model.embedding.weight.device
        autocast = torch.autocast(device.type, torch.bfloat16, enabled=self.bf16)
        with bfloat16_products(device, wanted=self.bf16), autocast:
            yield


@dataclass(frozen=True)
class _CTranslate2:
    translator: Any

    def score_tokens(self, batches: Iterable[Batch]) -> TokenScores:
        return ctranslate.score_tokens_ctranslate2(self.translator, batches)

    def translate(self, source: Side, search: Search = PAPER_SEARCH, **options: Any) -> list[Sequence[int]]:
        return ctranslate.translate_ctranslate2(self.translator, source, search, **options)
