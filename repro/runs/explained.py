"""What a Transformer computes for one sentence, step by step, and what its gradients are there. Paper: section 3.

The model of a run is built again in float64 from parts that keep each step, and reads a source and a translation as in
training. Without a part (`Missing`) it has the same weights: the change shows what this model used the part for.

    T target tokens    L tokens    V vocabulary    H heads    Q queries    K keys    E width of a head    D d_model
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from repro.corpora.parallel_text import as_text
from repro.data.tokenizer import Tokenizer
from repro.decoding.inside import BEGIN, SearchTree, by_words, observe
from repro.decoding.search import Search
from repro.decoding.translate import stepping
from repro.model.ablations.codes import NoPositions
from repro.model.ablations.selection import LinearWeights, seen_keys
from repro.model.attention import Mixing, softmax_of_seen
from repro.model.config import Hyper
from repro.model.masks import Padded, Ragged, Sees
from repro.model.special_tokens import EOS, PAD, SPECIAL
from repro.model.transformer import Transformer
from repro.runs.load import PARTS, Trained

Missing = Literal["mask", "scale", "positions", "softmax"]
ATTENTION = {kind: name.replace(".", ".{}.") for name, kind in PARTS.items()}  # the module, by the number of its layer
LONGEST = 40  # tokens of a sentence: what a reader can follow


class Steps(NamedTuple):
    """One attention for one sentence; after the backward pass each number has its gradient."""

    q: Tensor  # [1, H, Q, E]
    k: Tensor  # [1, H, K, E]
    v: Tensor
    products: Tensor  # q k^T, [1, H, Q, K]
    scores: Tensor  # after the scale
    weights: Tensor
    heads: Tensor  # [1, H, Q, E]
    seen: Tensor  # bool [1, H, Q, K]: which keys the mask leaves


class SubLayer(NamedTuple):
    """One sub-layer and what stands around it, [1, L, D] each; after the backward pass with gradients."""

    x: Tensor
    made: Tensor  # the sub-layer's output for x
    total: Tensor  # x + made
    normed: Tensor


class Watched(Mixing):
    """Equation (1), which keeps its steps; `without` leaves out the scale or the softmax."""

    steps: Steps

    def __init__(self, *, without: Missing | None = None, **sizes: int) -> None:
        super().__init__(**sizes)
        self.without = without
        self.linear = LinearWeights(**sizes)

    def __call__(
        self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor:
        products = q_BHQE @ k_BHKE.transpose(-2, -1)
        scores = products * (1.0 if self.without == "scale" else self.d_k**-0.5)
        weights = (self.linear.select if self.without == "softmax" else softmax_of_seen)(scores, bias)
        heads = weights @ v_BHKE
        self.steps = Steps(q_BHQE, k_BHKE, v_BHKE, products, scores, weights, heads, seen_keys(scores, bias))
        return heads


def watched_around(
    kept: list[SubLayer], x: Tensor, sub_layer: Callable[[Tensor], Tensor], norm: nn.Module, dropout: nn.Module
) -> Tensor:
    """LayerNorm(x + Sublayer(x)), which keeps its steps."""
    made = sub_layer(x)
    total = x + made
    kept.append(SubLayer(x, made, total, norm(total)))
    return kept[-1].normed


class Unmasked(Transformer):
    """The decoder sees later tokens, too. A search has nothing later to see."""

    def _sees_past(self, read: Padded | Ragged) -> Sees:
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Explained:
    """One sentence and a translation that was read with it; gradients are of `loss`."""

    model: Transformer
    tokenizer: Tokenizer
    source_ids: list[int]
    written_ids: list[int]
    found: str  # what the search wrote
    tree: SearchTree
    attention: dict[tuple[str, int], Steps]  # by kind and layer, from 1
    around: dict[tuple[str, int], tuple[SubLayer, ...]]  # that attention, and the feed-forward network if it follows
    logits: Tensor  # [T, V]
    loss: float  # nats a token of the translation, unsmoothed
    by_later: Tensor  # [T]: norm of the first token's gradient with respect to what the decoder reads at each place
    by_order: float  # largest change of a logit when the source's tokens are read in reverse

    @property
    def source(self) -> list[str]:
        """Tokens as they are spelled; one that goes on with a word begins with a hyphen."""
        return self._spelled(self.source_ids)

    @property
    def written(self) -> list[str]:
        """What the decoder is to write, its end included."""
        return self._spelled(self.written_ids)

    @property
    def read(self) -> list[str]:
        """What the decoder has read when it writes each of them."""
        return [BEGIN, *self.written[:-1]]

    @property
    def log_probs(self) -> Tensor:
        """Of each token of the translation, [T]."""
        return self.logits.log_softmax(-1)[range(len(self.written_ids)), self.written_ids]

    def spelled(self, id: int) -> str:
        """A token alone."""
        return SPECIAL[id] if id < len(SPECIAL) else self.tokenizer.decode([id]).strip() or "␣"

    def _spelled(self, ids: Sequence[int]) -> list[str]:
        told = by_words(ids, self.tokenizer)
        goes_on = [n > 0 and of == told["of"][n - 1] for n, of in enumerate(told["of"])]
        return ["-" * more + (token.strip() or "␣") for more, token in zip(goes_on, told["tokens"], strict=True)]


def ids_of(tokenizer: Tokenizer, sentence: str) -> list[int]:
    """Its tokens with the end symbol. Raises ValueError for what is no sentence, and for more than `LONGEST`."""
    try:
        text = as_text(sentence.encode("utf-8", "surrogateescape"))
    except ValueError as reason:
        raise ValueError(f'expected a sentence; what was typed {reason}. Type one: "the cat sees a dog".') from None
    ids: list[int] = tokenizer.encode([text])[0].tolist()
    if (n := len(ids) - 1) > LONGEST:
        raise ValueError(f"expected a sentence of at most {LONGEST} tokens, got {n}. Shorten it: each has a column.")
    return ids


def watched_model(trained: Trained, without: Missing | None) -> tuple[Transformer, list[list[SubLayer]]]:
    """The model of a run in float64 from parts that keep their steps, in evaluation mode; and what each layer keeps."""
    hyper, size, bare = Hyper(**trained.record.hyper), trained.tokenizer.size, without == "positions"
    model = (Unmasked if without == "mask" else Transformer)(
        hyper, size, mix=partial(Watched, without=without), positions=NoPositions if bare else None
    )
    weights = trained.model.state_dict()
    model.load_state_dict({name: of for name, of in weights.items() if not (bare and "_positions." in name)})
    layers: list[Any] = [*model.encoder, *model.decoder]
    kept: list[list[SubLayer]] = [[] for _ in layers]
    for layer, own in zip(layers, kept, strict=True):
        layer.around = partial(watched_around, own)
    return model.double().eval(), kept


def explained(
    trained: Trained, source_ids: list[int], target: Sequence[int] | None = None, without: Missing | None = None
) -> Explained:
    """Everything for one sentence; `target` is the translation that is read, None: what the search finds."""
    (model, kept), source = watched_model(trained, without), torch.tensor([source_ids])
    search = Search.of(trained.record.settings)
    with torch.inference_mode():
        step = stepping(model, torch.float64)
        found, tree = observe(step, model.start(source), len(source_ids) + search.extra, search)
    written = [*(found.ids if target is None else target), EOS]
    decoder_in = torch.tensor([[PAD, *written[:-1]]])
    for own in kept:
        own.clear()
    logits = model(source, decoder_in)[0]
    attention: dict[tuple[str, int], Steps] = {}
    around: dict[tuple[str, int], tuple[SubLayer, ...]] = {}
    part: Any
    n_layers = len(model.encoder)
    for n, of_encoder, of_decoder in zip(range(n_layers), kept, kept[n_layers:], strict=False):
        parts = {"encoder": of_encoder, "decoder": of_decoder[:1], "cross": of_decoder[1:]}
        for kind, sub_layers in parts.items():
            part = model.get_submodule(ATTENTION[kind].format(n))
            attention[kind, n + 1], around[kind, n + 1] = part.mixing.steps, tuple(sub_layers)
    for tensors in (*attention.values(), *chain.from_iterable(kept)):
        for tensor in tensors:
            if tensor.requires_grad:
                tensor.retain_grad()
    chosen = logits.log_softmax(-1)[range(len(written)), written]
    [later] = torch.autograd.grad(chosen[0], around["decoder", 1][0].x, retain_graph=True)
    (-chosen.mean()).backward()
    with torch.no_grad():
        backwards = model(torch.tensor([[*source_ids[-2::-1], EOS]]), decoder_in)[0]
    return Explained(
        model=model,
        tokenizer=trained.tokenizer,
        source_ids=source_ids,
        written_ids=written,
        found=trained.tokenizer.decode(found.ids),
        tree=tree,
        attention=attention,
        around=around,
        logits=logits.detach(),
        loss=-chosen.mean().item(),
        by_later=later[0].norm(dim=-1),
        by_order=(backwards - logits).abs().max().item(),
    )


def measures(seen: Explained) -> dict[str, float]:
    """Numbers that a missing part changes, to be compared for two models that read the same translation."""
    found = {
        "loss of the translation, nats a token": seen.loss,
        "gradient of the first token by what is read later": seen.by_later[1:].sum().item(),
        "largest change of a logit if the source is reversed": seen.by_order,
    }
    for kind in ATTENTION:
        steps = [of for (name, _), of in seen.attention.items() if name == kind]
        weights = torch.cat([of.weights.detach().flatten(0, 2) for of in steps])
        found[f"{kind}: spread of scores"] = torch.cat([of.scores[of.seen] for of in steps]).std(correction=0).item()
        found[f"{kind}: largest weight of a query, mean"] = weights.amax(-1).mean().item()
        found[f"{kind}: sum of a query's weights, mean"] = weights.sum(-1).mean().item()
    return found


class Answer(NamedTuple):
    """A question on back-propagation, what the formulas say, and this model's numbers; || || is a Euclidean norm."""

    question: str
    says: str
    numbers: dict[str, Any]


def six_answers(seen: Explained, layer: int) -> Iterator[Answer]:
    """The six questions: what the gradient of the loss does on its way back through attention of the encoder."""
    steps, masked = seen.attention["encoder", layer], seen.attention["decoder", layer]
    of: Any = seen.around["encoder", layer][0]
    part: Any = seen.model.get_submodule(ATTENTION["encoder"].format(layer - 1))
    sizes = [part.d_queries, part.d_queries, part.n_heads * part.d_v]
    of_matrices, of_biases = part.weight.grad.split(sizes), part.bias.grad.split(sizes)
    yield Answer(
        "What reaches W_Q, W_K and W_V?",
        "W_V gets the gradient of the heads by the weights. W_Q and W_K get theirs from the scores alone, through the "
        "softmax. A bias of the keys adds the same to all scores of a query, which the softmax does not see: 0.",
        {f"||dL/dW_{name}||": of.norm() for name, of in zip("QKV", of_matrices, strict=True)}
        | {f"||dL/db_{name}||": of.norm() for name, of in zip("QKV", of_biases, strict=True)},
    )
    gradient, later = _gradient(masked.scores).abs(), torch.ones_like(masked.seen[0]).triu(1)
    yield Answer(
        "What comes back from behind a mask?",
        "Nothing: a hidden key has weight 0, and so the gradient of its score is 0, exactly. The first token has no "
        "gradient by what the decoder reads later.",
        {
            "decoder, scores of earlier tokens: largest |dL/ds|": (gradient * ~later).max(),
            "decoder, scores of later tokens: largest |dL/ds|": (gradient * later).max(),
            "log p of the first token, by what is read at its place": seen.by_later[0],
            "log p of the first token, by what is read later": seen.by_later[1:].sum(),
        },
    )
    before, after = (_gradient(one).norm() for one in (steps.products, steps.scores))
    yield Answer(
        "What does the scale do to it?",
        "It divides the gradient as it divides q k^T: by the square root of d_k.",
        {
            "||dL/d scores||": after,
            "||dL/d (q k^T)||": before,
            "ratio": before / after,
            "1 / sqrt(d_k)": part.d_k**-0.5,
        },
    )
    inputs = {number: one[0].x for (kind, number), one in seen.around.items() if kind == "encoder"}
    yield Answer(
        "What goes through the residual path?",
        "x + f(x) sends back the gradient of the sum as it is, and adds what comes through f. So lower layers are "
        "reached even where f gives little back.",
        {
            "through the residual path": of.total.grad.norm(),
            "through the sub-layer": (of.x.grad - of.total.grad).norm(),
            **{f"||dL/dx|| at the input of layer {number}": _gradient(x).norm() for number, x in inputs.items()},
        },
    )
    went, given = of.total.grad[0], of.total.detach()[0]
    centred = given - given.mean(-1, keepdim=True)
    along = (went * centred).sum(-1) / (went.norm(dim=-1) * centred.norm(dim=-1))
    yield Answer(
        "What does LayerNorm do to it?",
        "It multiplies it by the gain, takes out of each token's gradient the mean and the part along the token, and "
        "divides by the token's standard deviation.",
        {
            "||gradient|| of what the norm gives": of.normed.grad.norm(),
            "||gradient|| of what it is given": went.norm(),
            "standard deviation of a token, mean": given.std(-1, correction=0).mean(),
            "largest |mean| of a token's gradient": went.mean(-1).abs().max(),
            "largest |cosine| of gradient and token": along.abs().max(),
        },
    )
    largest = steps.weights.detach()[0].amax(-1).flatten()
    by_weights, by_scores = (_gradient(one).flatten(0, 1).norm(dim=-1) for one in (steps.weights, steps.scores))
    numbers: dict[str, Any] = {}
    for name, place in (("sharpest", largest.argmax()), ("flattest", largest.argmin())):
        numbers[f"{name} query: its largest weight"] = largest[place]
        numbers[f"{name} query: ||dL/d weights||"] = by_weights[place]
        numbers[f"{name} query: ||dL/d scores||"] = by_scores[place]
    yield Answer(
        "What is left at a saturated softmax?",
        "The gradient of the scores is diag(p) - p p^T times that of the weights: the nearer a weight is to 1, the "
        "less is left. The sharpest and the flattest query, over all heads:",
        numbers,
    )


def _gradient(of: Tensor) -> Tensor:
    """The gradient of a tensor, without the batch dimension."""
    assert of.grad is not None, "asked for after the backward pass"
    return of.grad[0]
