"""What translates and scores: this suite's own search, or CTranslate2 with the same weights."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from repro.data.batch import Batch
from repro.decoding import ctranslate
from repro.decoding.translate import TokenScores, score_tokens, translate
from repro.model.bfloat16 import bfloat16_products
from repro.model.protocol import TranslationSystem

Name = Literal["torch", "ctranslate2", "ctranslate2-int8"]
NAMES: tuple[Name, ...] = get_args(Name)
COMPUTE: dict[Name, str] = {"ctranslate2": "float32", "ctranslate2-int8": "int8"}


@dataclass(frozen=True)
class Backend:
    """A trained model, ready to score and to translate."""

    score_tokens: Callable[[Iterable[Batch]], TokenScores]  # as `translate.score_tokens`
    translate: Callable[..., list[Sequence[int]]]  # as `translate.translate`, from (source, search, between=...) on


@contextmanager
def opened(name: Name, model: TranslationSystem, *, bf16: bool = False) -> Iterator[Backend]:
    """The backend of that name with the weights of `model`; with `bf16` our own one makes its products in bfloat16.

    Our own one moves the model to the GPU, if there is one: Lightning leaves it on the CPU when training ends. As in
    training, no other kind of GPU is used. Raises ImportError if CTranslate2 is asked for and not installed.
    """
    if name == "torch":
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = model.to(device)

        def precisely(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                autocast = torch.autocast(device.type, torch.bfloat16, enabled=bf16)
                with bfloat16_products(device, wanted=bf16), autocast:
                    return function(model, *args, **options)

            return call

        yield Backend(precisely(score_tokens), precisely(translate))
        return
    with tempfile.TemporaryDirectory(prefix="ctranslate2-") as folder:
        ctranslate.export(model, Path(folder))
        theirs = ctranslate.load(Path(folder), compute_type=COMPUTE[name])
        yield Backend(
            partial(ctranslate.score_tokens_ctranslate2, theirs), partial(ctranslate.translate_ctranslate2, theirs)
        )
