"""Tasks are values, by which rows are told apart; scales bear every row, and that of the paper is the paper's."""

from dataclasses import replace

import pytest

from repro.decoding.search import PAPER_SEARCH
from repro.results.record import TRANSLATION
from repro.runs.scales import SCALES
from repro.runs.task import Parsing, Task, Translation, searching_at


def test_translation_is_a_task() -> None:
    task: Task = Translation("en-de")
    assert (task.name, task.search, task.facts) == ("en-de", PAPER_SEARCH, TRANSLATION)
    assert task == Translation("en-de") != Translation("en-fr")
    assert task.score(["ein Hund"], ["eine Katze"], in_tokens=False).keys() == {
        "bleu", "bleu_signature", "bleu_published", "bleu_published_signature",
    }  # fmt: skip
    spanish = Translation("en-es").score(["un perro"], ["un perro"], in_tokens=False)
    assert spanish["bleu_published"] is spanish["bleu_published_signature"] is None


def test_more_text_is_more_of_training_alone_and_only_where_it_is_generated() -> None:
    task, smoke = Translation("en-de", times=4), SCALES["smoke"]
    assert smoke.grammar is not None
    assert task.at(smoke) == replace(smoke, grammar=replace(smoke.grammar, n_train=8_000)) != smoke
    with pytest.raises(ValueError, match="4 times the text of scale captions: expected .* generated"):
        task.at(SCALES["captions"])


def test_a_scale_may_want_short_outputs_of_the_tasks_that_are_ours() -> None:
    smoke, laptop = SCALES["smoke"], SCALES["laptop"]
    for task, extra in ((Translation("en-de"), 10), (Parsing(silver=True), 100)):
        short = searching_at(task, smoke)
        assert (short.search, short.name) == (replace(task.search, extra=extra), task.name)
        assert short == task, "a row is found by its task"
        assert short.facts == task.facts, "so are published records, and the paper's search is the paper's"
        assert searching_at(task, laptop) is task


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
