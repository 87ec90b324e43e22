"""Translation of 200 sentences by the fast way equals the plain search, token for token."""

from typing import Any

import numpy as np
import pytest
import torch
from decoding.plain import plain_search
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from repro.decoding.translate import translate
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.results.search import Search


def padded(text: Any) -> Tensor:
    return pad_sequence(
        [torch.from_numpy(text.sentence(i).astype(np.int64)) for i in range(len(text))],
        batch_first=True,
        padding_value=PAD,
    )


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.0), (4, 0.0), (4, 0.6), (3, 1.0)])
def test_the_fast_way_finds_what_the_plain_search_finds(
    model: Transformer, text: Any, width: int, alpha: float
) -> None:
    limits = [length + 9 for length in text.lengths.tolist()]
    expected = plain_search(model, padded(text), limits, width=width, alpha=alpha, theirs=False)
    found = translate(model, text, Search(width, alpha, extra=9))
    assert found == expected
    assert len(set(found)) > 100, "the sentences are to differ"
    assert EOS not in {token for ids in found for token in ids}
