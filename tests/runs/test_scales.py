"""The scale that shows the paper's numbers has the paper's settings, written out; every row exists at each scale."""

import pytest

from repro.runs.scales import SCALES


@pytest.mark.parametrize("scale", SCALES)
def test_the_widths_of_a_scale_can_be_divided_by_every_row(scale: str) -> None:
    base = SCALES[scale].base
    assert (base.n_heads, base.n_layers % 3, base.d_model % 64, base.d_k % 4) == (8, 0, 0, 0)


def test_the_paper_scale_is_the_papers() -> None:
    paper = SCALES["paper"]
    base = paper.base
    assert (base.n_layers, base.d_model, base.d_ff, base.n_heads, base.d_k, base.d_v) == (6, 512, 2_048, 8, 64, 64)
    assert (base.dropout, base.label_smoothing, base.steps, base.warmup) == (0.1, 0.1, 100_000, 4_000)
    # section 5.1: WMT 2014, batches of "approximately 25000 source tokens and 25000 target tokens"
    assert (paper.corpus, paper.batch_tokens, paper.batch_by, paper.rules) == ("wmt14", 25_000, "tokens", ())
    tokens = {pair: (paper.subwords(pair).kind, paper.subwords(pair).size) for pair in ("en-de", "en-fr")}
    assert tokens == {"en-de": ("bpe", 37_000), "en-fr": ("wordpiece", 32_000)}
