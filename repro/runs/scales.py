"""The scales: presets of base size, text and budget at which a row is run, and what a table made there shows.

A scale changes size, text and budget, never a row. All keep h = 8, N divisible by 3, d_model by 64 and d_k by 4, so
that every row exists at each. The schedule is the printed one everywhere: its peak is (d_model warmup)^-0.5, so a
small model and a short run set `warmup` by the peak they can bear, not by the paper's 4 % of the updates
(`docs/deviations.md`).
"""

from dataclasses import dataclass, replace
from typing import Literal

from repro.corpora.catalogue import CORPORA, GrammarSizes
from repro.data.vocabulary import Subwords
from repro.model.config import BASE, Hyper

ABOUT_37000 = ("bpe", 37_000)  # "about 37000 tokens": section 5.1


@dataclass(frozen=True, kw_only=True)
class TreeText:
    """What a scale has for Table 4: a treebank, and how it becomes tokens. Paper: section 6.3."""

    corpus: str
    sizes: GrammarSizes | None = None
    vocab_size: int = 16_384  # "a vocabulary of 16K tokens" for the WSJ alone
    silver_vocab_size: int = 32_768  # 32K with silver text
    max_length: int = 256
    extra_length: int | None = None  # as in `Scale`


@dataclass(frozen=True, kw_only=True)
class Scale:
    """One preset. Tokens are tokens of one side, end symbol included."""

    name: str
    base: Hyper
    corpus: str
    grammar: GrammarSizes | None = None
    vocab_size: int | None = None  # shared tokens; None: those the paper used on the corpus
    rules: tuple[str, ...] = ()  # by which training pairs are left out (`repro/corpora/filters.py`); the paper has none
    batch_tokens: int  # of each side in one update, counted by `batch_by`
    batch_by: Literal["padded_tokens", "tokens"] = "padded_tokens"  # as the first code counts; the paper: real tokens
    max_length: int  # longer training pairs are left out
    extra_length: int | None = None  # tokens by which an output may be longer than its input; None: the paper's
    sentence_tokens: int  # average length, for the cost forecast only
    device_tokens: int = 32_768  # of each side that a device takes at once, counted likewise; more are accumulated
    precision: Literal["fp32", "bf16"] = "fp32"  # of matrix products, unless another is asked for
    log_every: int  # optimizer steps
    validate_every: int
    checkpoint_every: int
    trees: TreeText = TreeText(corpus="craft")
    claim: str
    equal_updates: bool = False  # every row makes as many as the base, so that none gains by longer training

    def subwords(self, pair: str) -> Subwords:
        """The vocabulary of a language pair."""
        own = Subwords(*CORPORA[self.corpus].subwords.get(pair, ABOUT_37000))
        return replace(own, size=self.vocab_size or own.size)

    def micro_batches(self, devices: int) -> int:
        """How many micro-batches each device makes of an update, so that each fits in `device_tokens`."""
        return -(-self.batch_tokens // (devices * self.device_tokens))


def _small(d_model: int, *, steps: int, warmup: int, average_every: int) -> Hyper:
    """The base model with N = 3 and all widths smaller by one factor; h = 8 and P_drop are kept."""
    return replace(
        BASE,
        n_layers=3,
        d_model=d_model,
        d_ff=4 * d_model,
        d_k=d_model // 8,
        d_v=d_model // 8,
        steps=steps,
        warmup=warmup,
        average_every=average_every,
    )


_PAPER = Scale(
    name="paper",
    base=BASE,
    corpus="wmt14",
    batch_tokens=25_000,
    batch_by="tokens",
    max_length=256,
    sentence_tokens=28,
    precision="bf16",  # made on a GPU, where float32 takes five times as long (docs/performance.md)
    log_every=100,
    validate_every=1_000,
    checkpoint_every=1_500,
    trees=TreeText(corpus="wsj", max_length=512),
    claim="the numbers",
)
_ALL = (
    Scale(
        name="smoke",
        base=_small(64, steps=20, warmup=200, average_every=1),
        corpus="grammar",
        grammar=GrammarSizes(n_train=2_000, n_dev=20, n_test=20),
        vocab_size=600,
        batch_tokens=512,
        max_length=128,
        extra_length=10,  # a model that has learned nothing writes up to the limit
        sentence_tokens=20,
        log_every=5,
        validate_every=10,
        checkpoint_every=10,
        trees=TreeText(
            corpus="grammar_trees",
            sizes=GrammarSizes(n_train=500, n_dev=20, n_test=20, n_silver=1_500),
            vocab_size=600,
            silver_vocab_size=1_200,
            max_length=128,
            extra_length=100,
        ),
        claim="that the code runs",
    ),
    Scale(
        name="laptop",
        base=_small(64, steps=1_800, warmup=800, average_every=30),
        corpus="grammar",
        grammar=GrammarSizes(n_train=3_000, n_dev=1_000, n_test=1_000),  # few enough to learn by heart
        vocab_size=3_000,
        batch_tokens=512,
        max_length=128,
        sentence_tokens=16,
        log_every=20,
        validate_every=300,
        checkpoint_every=200,
        trees=TreeText(
            corpus="grammar_trees",
            sizes=GrammarSizes(n_train=2_000, n_dev=500, n_test=500, n_silver=18_000),
            vocab_size=1_500,
            silver_vocab_size=3_000,
            max_length=128,
        ),
        claim="the sign of large effects",
    ),
    Scale(
        name="captions",
        base=_small(128, steps=3_000, warmup=1_000, average_every=45),
        corpus="multi30k",
        vocab_size=10_000,
        batch_tokens=2_048,
        max_length=128,
        sentence_tokens=16,
        log_every=20,
        validate_every=500,
        checkpoint_every=200,
        claim="signs on small real text",
        equal_updates=True,
    ),
    replace(
        _PAPER,
        name="single_gpu",
        base=replace(BASE, steps=25_000, average_every=375),
        log_every=50,
        checkpoint_every=1_000,
        trees=TreeText(corpus="craft"),
        claim="the order of rows",
    ),
    _PAPER,
)
SCALES = {scale.name: scale for scale in _ALL}
