"""A finished run, put to use: lines in, translations, trees, scores and attention out; from commands or from Python.

Letters: H heads, Q queries (tokens that look), K keys (tokens that are looked at).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from repro.data.treebank import Mended, mended
from repro.decoding.search import Search
from repro.model.special_tokens import EOS, PAD, SPECIAL
from repro.results.record import Record
from repro.runs.line_lengths import as_ids, n_places, refuse_long
from repro.runs.load import Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import float32
    from numpy.typing import NDArray
    from pandas import DataFrame

    from repro.data.batch import DevBatches

BUDGET = 4_096  # padded tokens of a batch that is scored
PARTS = {"encoder.self_attention": "encoder", "decoder.self_attention": "decoder", "decoder.cross_attention": "cross"}


def check_translates(run: Record) -> None:
    """Raise ValueError for a run that parses."""
    if "f1" in run.about["scores"]:
        raise ValueError(f"expected a run that translates, got one that parses, of {run.table}. Use repro parse.")


def check_parses(run: Record) -> None:
    """Raise ValueError for a run that translates."""
    if "f1" not in run.about["scores"]:
        raise ValueError(f"expected a run that parses, of experiments/table4.py, got one of {run.table}, {run.pair}.")


def outputs(
    trained: Trained, lines: Sequence[str], search: Search, *, backend: Any = "torch", bf16: bool = False
) -> Iterator[tuple[str, str]]:
    """Each line with the run's output for it; an empty line has an empty output.

    Raises ValueError for a line that is too long.
    """
    from repro.decoding.backend import opened

    numbers = [number for number, line in enumerate(lines, 1) if line]
    source = as_ids(trained.tokenizer, [line for line in lines if line])
    if (most := n_places(trained.model, backend)) is not None:
        refuse_long(source, max(0, most - search.extra), "line", numbers)
    with opened(backend, trained.model, bf16=bf16) as ready:
        ids = ready.translate(source, search)
    texts = map(trained.tokenizer.decode, ids)
    return ((line, next(texts) if line else "") for line in lines)


def trees(
    trained: Trained, sentences: Sequence[Sequence[str]], search: Search, *, backend: Any = "torch", bf16: bool = False
) -> Iterator[Mended | None]:
    """The tree of each sentence, given by its words, and what was mended in it; None for an empty sentence.

    Brackets among the words are spelled as treebanks spell them, since in a tree they mean something else.
    """
    lines = [" ".join(map(_in_treebank_spelling, words)) for words in sentences]
    found = outputs(trained, lines, search, backend=backend, bf16=bf16)
    return (mended(text, words.split(" ")) if words else None for words, text in found)


def _in_treebank_spelling(word: str) -> str:
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


@dataclass(frozen=True)
class SentenceScores:
    """How likely given translations are, sentence by sentence; logarithms are natural, end symbols count as tokens."""

    log_probs: tuple[float, ...]  # of each sentence, the sum over its tokens
    n_each: tuple[int, ...]  # tokens of each sentence, of the target

    @property
    def n_tokens(self) -> int:
        """The tokens of all targets."""
        return sum(self.n_each)

    @property
    def nll(self) -> float:
        """Mean over all tokens, nats."""
        return -math.fsum(self.log_probs) / self.n_tokens

    @property
    def ppl(self) -> float:
        """Perplexity of all sentences, per token."""
        return math.exp(self.nll)

    @property
    def ppls(self) -> tuple[float, ...]:
        """Perplexity of each sentence, per token."""
        return tuple(math.exp(-total / n) for total, n in zip(self.log_probs, self.n_each, strict=True))


def score_sentences(trained: Trained, sources: Sequence[str], targets: Sequence[str]) -> SentenceScores:
    """How likely `targets` are as outputs for `sources`, line by line.

    Raises ValueError for sides of unequal length and a line that is too long.
    """
    import torch

    if len(sources) != len(targets) or not sources:
        raise ValueError(
            f"expected as many sources as targets, and one at least; got {len(sources)} and {len(targets)}."
        )
    batches, model = _batches(trained, sources, targets), trained.model
    device = model.embedding.weight.device
    found = torch.zeros(len(sources), dtype=torch.float64)
    with torch.inference_mode(), torch.autocast(device.type, enabled=False):  # whatever precision the caller uses
        for batch in (batches[i] for i in range(len(batches))):
            source, decoder_in, target = (
                torch.as_tensor(side, device=device) for side in (batch.source, batch.decoder_in, batch.target)
            )
            log_p = model.embedding.logits(model.decode(decoder_in, model.encode(source), source)).log_softmax(-1)
            of_token = log_p.gather(-1, target[..., None])[..., 0].double()
            found[batch.sentence] = of_token.masked_fill(target == PAD, 0.0).sum(-1).cpu()
    return SentenceScores(tuple(found.tolist()), tuple(batches.target.lengths.tolist()))


def _batches(trained: Trained, sources: Sequence[str], targets: Sequence[str]) -> "DevBatches":
    from repro.data.batch import DevBatches

    source, target = as_ids(trained.tokenizer, sources), as_ids(trained.tokenizer, targets)
    for name, side in (("source", source), ("target", target)):
        refuse_long(side, n_places(trained.model), f"line of the {name}")
    return DevBatches(source, target, budget=BUDGET, rank=0, world=1)


@dataclass(frozen=True, eq=False)  # arrays compare element by element, and have no hash
class Attention:
    """Where each head looks: by part and layer float32 [H, Q, K], rows sum to one."""

    source_tokens: tuple[str, ...]  # what the encoder reads, the end symbol last
    target_tokens: tuple[str, ...]  # what the decoder reads: "(begin)", a zero vector; then the target without its end
    weights: "Mapping[tuple[str, int], NDArray[float32]]"  # by ("encoder" | "decoder" | "cross", layer from 1)

    def __repr__(self) -> str:
        """Its tokens and layers; the numbers are in `head`."""
        parts = ", ".join(f"{part} {layer}" for part, layer in self.weights)
        return f"<attention from {len(self.source_tokens)} to {len(self.target_tokens)} tokens; {parts}>"

    def head(self, part: str, layer: int, head: int) -> "DataFrame":
        """The weights of one head: a row for each query token, a column for each key; layers and heads count from 1.

        Raises ValueError for a head that the model does not have.
        """
        from pandas import DataFrame

        if head not in range(1, 1 + len(self.weights.get((part, layer), ()))):
            known = ", ".join(f"{name} {number} ({len(of)} heads)" for (name, number), of in self.weights.items())
            raise ValueError(f"expected a head, from 1 on, of one of: {known}; got {part} {layer}, head {head}.")
        looking = self.source_tokens if part == "encoder" else self.target_tokens
        seen = self.target_tokens if part == "decoder" else self.source_tokens
        return DataFrame(self.weights[part, layer][head - 1], index=list(looking), columns=list(seen))

    def plot(self, part: str = "cross", layer: int | None = None, head: int | None = None) -> "Figure":
        """A picture of one head, or of the mean over the heads of a layer, by default the last layer.

        Queries are on the left, keys above. Raises ValueError for a head that the model does not have.
        """
        from matplotlib.figure import Figure

        of_part = [number for name, number in self.weights if name == part]
        layer = max(of_part, default=1) if layer is None else layer
        shown = self.head(part, layer, 1 if head is None else head)
        weights = self.weights[part, layer].mean(0) if head is None else shown.to_numpy()
        figure = Figure(figsize=(1.5 + 0.4 * len(shown.columns), 1.2 + 0.3 * len(shown.index)), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(range(len(shown.columns)), [*shown.columns], rotation=60, ha="left")
        axes.set_yticks(range(len(shown.index)), [*shown.index])
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.set_title(f"{part}, layer {layer}, {'mean of the heads' if head is None else f'head {head}'}")
        return figure


def attention_of(trained: Trained, source: str, target: str) -> Attention:
    """Where each head looks while `target` is read as the output for `source`. Raises ValueError without heads."""
    import torch

    from repro.decoding.inside import BEGIN

    ids, written = (trained.tokenizer.encode([line])[0].tolist() for line in (source, target))
    read = [PAD, *written[:-1]]
    device = trained.model.embedding.weight.device
    maps = {}
    if hasattr(trained.model, "attention_maps"):
        with torch.inference_mode(), torch.autocast(device.type, enabled=False):
            maps = trained.model.attention_maps(*(torch.tensor([side], device=device) for side in (ids, read)))
    if not maps:
        run = trained.record
        raise ValueError(f"expected a model whose heads have weights; row {run.row!r} of {run.table} has none.")
    weights = {}
    for name, found in maps.items():
        stack, layer, kind = name.split(".")[:3]
        weights[PARTS[f"{stack}.{kind}"], int(layer) + 1] = found[0].float().cpu().numpy()
    names = {PAD: BEGIN, EOS: SPECIAL[EOS]}

    def texts(side: Sequence[int]) -> tuple[str, ...]:
        return tuple(names.get(id) or trained.tokenizer.decode([id]) for id in side)

    return Attention(texts(ids), texts(read), weights)
