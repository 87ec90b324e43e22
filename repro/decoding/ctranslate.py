"""A second backend for the same model: CTranslate2, which shares no line of code with ours.

It is independent evidence that the model is the standard Transformer (`tests/decoding/test_ctranslate.py`), and
it can translate in 8 bits. Optional: the extra [fast].

Two rules of CTranslate2's search differ from `repro.decoding.beam`, so a few translations differ:

- of the 2 W candidates of a step, an end symbol counts only among the first W; for us among all of them;
- a sentence is done when W of its hypotheses have ended; for us when no live one can win. At alpha 0 it
  searches until its best candidate is an end symbol, after which nothing can win either.

Both keep the same hypotheses live, so we find all that CTranslate2 finds and our answer never scores lower. Which of
its hypotheses is the answer is decided here by our length penalty, not by its own, log-probability / length^alpha.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.data.batch import Batch
from repro.data.shards import Side
from repro.decoding.search import PAPER_SEARCH, Search
from repro.decoding.translate import BATCH_TOKENS, TokenScores, batches_by_length, tokens_at_once
from repro.model.attention import MultiHeadAttention, SelfAttention
from repro.model.embedding import LearnedPositions
from repro.model.layers import NORM_EPS, EncoderLayer
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.storage import atomic

POSITIONS = 4_096  # rows of the table of sinusoids that the format requires; CTranslate2 refuses longer sentences
WEIGHTS = "model.bin"  # written last: a folder with this file is a complete model

INSTALL = "Install it: pip install 'attention-repro[fast]', or in a clone pip install -c constraints.txt -e '.[fast]'."

Array = NDArray[np.float32]


def export(model: TranslationSystem, folder: Path) -> None:
    """Write `model` to `folder` as a CTranslate2 model in float32. Raises ValueError for what it cannot express."""
    refuse(model)
    assert isinstance(model, Transformer)
    library = _library()
    layers = [layer for layer in model.encoder if isinstance(layer, EncoderLayer)]
    n_heads = layers[0].self_attention.n_heads
    spec = library.specs.TransformerSpec.from_config(len(layers), n_heads, pre_norm=False)
    spec.config.layer_norm_epsilon = NORM_EPS

    matrix = _array(model.embedding.weight)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = matrix
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = True  # by sqrt(d_model)
    spec.encoder.position_encodings.encodings = _positions(model.source_positions)
    spec.decoder.position_encodings.encodings = _positions(model.target_positions)
    for theirs, encoding in zip(spec.encoder.layer, layers, strict=True):
        _set_attention(theirs.self_attention, encoding.self_attention, encoding.norms[0])
        _set_feed_forward(theirs.ffn, encoding.feed_forward, encoding.norms[1])
    for theirs, decoding in zip(spec.decoder.layer, model.decoder_layers, strict=True):
        _set_attention(theirs.self_attention, decoding.self_attention, decoding.norms[0])
        _set_attention(theirs.attention, decoding.cross_attention, decoding.norms[1])
        _set_feed_forward(theirs.ffn, decoding.feed_forward, decoding.norms[2])

    names = _names(range(len(matrix)))
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.eos_token = names[EOS]
    # names padding: the decoder starts from the zero vector, and we have no unknown token, so none is ever written
    spec.decoder.start_from_zero_embedding = True
    spec.config.decoder_start_token = spec.config.bos_token = spec.config.unk_token = names[PAD]

    spec.validate()
    spec.optimize()
    with tempfile.TemporaryDirectory() as whole:
        spec.save(whole)
        for path in sorted(Path(whole).iterdir(), key=lambda path: path.name == WEIGHTS):
            with path.open("rb") as made:
                atomic.write_bytes(folder / path.name, partial(shutil.copyfileobj, made))


def refuse(model: TranslationSystem) -> None:
    """Raise ValueError for a system that CTranslate2 cannot express."""
    if not model.in_ctranslate2:
        kind = type(model).__name__
        raise ValueError(
            f"CTranslate2 knows the Transformer as printed, and "
            f"{'this one has other parts' if kind == 'Transformer' else f'{kind} is not that'}. "
            "Torch translates and scores it: --backend torch."
        )


def load(folder: Path, *, compute_type: str = "float32", threads: int | None = None) -> Any:
    """A `ctranslate2.Translator` of an exported model, which works on as many batches at once as it has `threads`.

    `compute_type` is "float32", or "int8" for weights and products in 8 bits. `threads` is torch's number by default.
    One batch for each thread keeps them busier than one batch for all.
    """
    library = _library()
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f"expected a CTranslate2 model in {folder}, got no {WEIGHTS}. Export a model first.")
    possible = sorted(library.get_supported_compute_types("cpu"))
    if compute_type not in possible:
        raise ValueError(f"expected one of {', '.join(possible)} on this processor, got {compute_type!r}.")
    return library.Translator(
        os.fspath(folder),
        compute_type=compute_type,
        inter_threads=threads or torch.get_num_threads(),
        intra_threads=1,
    )


def translate_ctranslate2(
    translator: Any,
    source: Side,
    search: Search = PAPER_SEARCH,
    *,
    batch_tokens: int = BATCH_TOKENS,
    between: Callable[[int], None] = lambda done: None,
) -> list[Sequence[int]]:
    """The best hypothesis of each sentence as ids without the end symbol, as in `translate.translate`."""
    lengths = np.asarray(source.lengths, np.int64)

    def start(sentences: Iterable[int], limit: int) -> list[Any]:
        """Start translating these sentences into at most `limit` tokens each; asking for a result waits for it."""
        return translator.translate_batch(
            [_names(source.sentence(i)) for i in sentences],
            asynchronous=True,
            beam_size=search.beam,
            num_hypotheses=search.beam,
            length_penalty=1 if search.alpha else 0,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            disable_unk=True,
            return_end_token=True,
            return_scores=True,
        )

    batches = [batch.tolist() for batch in batches_by_length(lengths, tokens_at_once(batch_tokens, search))]
    begun = [start(batch, int(lengths[batch].max()) + search.extra) for batch in batches]
    found: dict[int, Sequence[int]] = {}
    for batch, results in zip(batches, begun, strict=True):
        for i, pending in zip(batch, results, strict=True):
            limit, result = int(lengths[i]) + search.extra, pending.result()
            if max(map(len, result.hypotheses)) > limit:  # the batch had the limit of its longest sentence
                result = start([i], limit)[0].result()
            found[i] = _best(result, search)
        between(len(found))
    return [found[i] for i in range(len(found))]


def score_tokens_ctranslate2(translator: Any, batches: Iterable[Batch]) -> TokenScores:
    """As `translate.score_tokens`, but without accuracy: CTranslate2 gives the probability of the given token only."""
    begun = []
    for batch in batches:
        source, target = batch.source, batch.target
        assert isinstance(source, Tensor)
        assert isinstance(target, Tensor)
        begun += _begin_to_score(translator, source, target)
    log_probs = [pending.result().log_probs for pending in begun]
    return TokenScores(nll=-sum(map(sum, log_probs)) / sum(map(len, log_probs)), accuracy=None)


def _begin_to_score(translator: Any, source: Tensor, target: Tensor) -> list[Any]:
    """Start scoring these rows; asking for a result waits for it."""
    sides = [[_names(row[row != PAD].tolist()) for row in side] for side in (source, target)]
    without_end = [names[:-1] for names in sides[1]]  # CTranslate2 adds it
    begun: list[Any] = translator.score_batch(sides[0], without_end, max_input_length=0, asynchronous=True)
    return begun


def _best(result: Any, search: Search) -> Sequence[int]:
    """The hypothesis with the best score by our rules: any that ended beats any that was cut at the limit."""

    def worth(place: int) -> tuple[bool, float]:
        names, score = result.hypotheses[place], result.scores[place]
        log_prob = score * len(names) if search.alpha else score  # at length penalty 1 the score is a mean
        return names[-1] == str(EOS), log_prob / search.penalty(len(names))

    best = result.hypotheses[max(range(len(result.hypotheses)), key=worth)]
    return tuple(int(name) for name in best if name != str(EOS))


def _names(ids: Iterable[int]) -> list[str]:
    """Token names for CTranslate2, which wants text: the ids in digits."""
    return [str(id) for id in ids]


def _set_attention(theirs: Any, ours: MultiHeadAttention, norm: nn.Module) -> None:
    """Copy an attention. CTranslate2 needs d_k = d_v, so the narrower of the two is padded with zeros."""
    widths = [ours.d_k, ours.d_k, ours.d_v]
    width = max(widths)

    def heads(rows: Array, narrow: int) -> Array:
        """[H narrow, ...] -> [H width, ...]"""
        apart = rows.reshape(ours.n_heads, narrow, -1)
        return np.pad(apart, [(0, 0), (0, width - narrow), (0, 0)]).reshape(ours.n_heads * width, *rows.shape[1:])

    places = np.cumsum([ours.n_heads * d for d in widths])[:-1]
    weights, biases = (
        [heads(part, d) for part, d in zip(np.split(_array(rows), places), widths, strict=True)]
        for rows in (ours.weight, ours.bias)
    )
    fused = [slice(0, 3)] if isinstance(ours, SelfAttention) else [slice(0, 1), slice(1, 3)]
    for linear, parts in zip(theirs.linear, fused, strict=False):
        linear.weight, linear.bias = np.concatenate(weights[parts]), np.concatenate(biases[parts])
    theirs.linear[-1].weight = np.ascontiguousarray(heads(_array(ours.output.weight).T, ours.d_v).T)
    theirs.linear[-1].bias = _array(ours.output.bias)
    theirs.queries_scale = np.float32(ours.d_k**-0.5)
    _set_norm(theirs.layer_norm, norm)


def _set_feed_forward(theirs: Any, ours: Any, norm: nn.Module) -> None:
    for linear, place in ((theirs.linear_0, 0), (theirs.linear_1, 2)):
        linear.weight, linear.bias = _array(ours[place].weight), _array(ours[place].bias)
    _set_norm(theirs.layer_norm, norm)


def _set_norm(theirs: Any, ours: nn.Module) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _positions(ours: nn.Module) -> Array:
    """The table of positions, [positions, d_model]."""
    return _array(ours.weight if isinstance(ours, LearnedPositions) else ours(0, POSITIONS))


def _array(tensor: Any) -> Array:
    return tensor.detach().float().cpu().contiguous().numpy()


def check_installed() -> None:
    """Raise ImportError now if CTranslate2 is missing, rather than after training."""
    _library()


def _library() -> Any:
    """CTranslate2, imported on first use. Raises ImportError if it is not installed."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ImportError(f"expected CTranslate2, got {error}. {INSTALL}") from None
    return ctranslate2
