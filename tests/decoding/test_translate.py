"""Translation of 200 sentences by the fast way equals the plain search, token for token."""

from typing import Any

import numpy as np
import pytest
import torch
from decoding.plain import plain_search
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from repro.decoding.search import Search
from repro.decoding.translate import at_once, translate
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer


def padded(text: Any) -> Tensor:
    return pad_sequence(
        [torch.from_numpy(text.sentence(i).astype(np.int64)) for i in range(len(text))],
        batch_first=True,
        padding_value=PAD,
    )


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.0), (4, 0.6), (3, 1.0)])
def test_the_fast_way_finds_what_the_plain_search_finds(
    model: Transformer, text: Any, width: int, alpha: float
) -> None:
    limits = [length + 9 for length in text.lengths.tolist()]
    expected = plain_search(model, padded(text), limits, width=width, alpha=alpha, theirs=False)
    found = translate(model, text, Search(width, alpha, extra=9))
    assert found == expected
    assert len(set(found)) > 100, "the sentences are to differ"
    assert EOS not in {token for ids in found for token in ids}


@pytest.mark.parametrize("width", [2, 7])
def test_no_beam_keeps_more_hypotheses_at_once_than_the_papers(model: Transformer, text: Any, width: int) -> None:
    """With a beam of 21 and as many sentences as with 4, parsing CRAFT took 17 GB."""
    done = [0]
    search = Search(width, 0.6, extra=9)
    found = translate(model, text, search, batch_tokens=300, between=done.append)
    taken = np.diff(done)
    longest = np.sort(text.lengths)[::-1][done[:-1]]  # of each batch: the longest sentences come first
    assert (taken * longest * max(width, 4) <= 300 * 4).all()
    assert len(taken) > 5, "several batches"
    assert taken.sum() == len(text)
    assert found == translate(model, text, search, batch_tokens=100_000), "and it finds the same"


def test_a_gpu_searches_more_at_once() -> None:
    assert (at_once(torch.device("cpu")), at_once(torch.device("cuda", 1))) == (4_096, 32_768)
