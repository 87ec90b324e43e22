"""The same model as Hugging Face's MarianMT: a folder that `transformers` opens without a line of our code.

MarianMT is the Transformer as printed, with its dimensions in another order. The differences, and how they are bridged:

- Its positions have all sines before all cosines; ours are interleaved, as printed. Permuting the model's dimensions
  everywhere turns one into the other and changes no logit.
- Our decoder begins with a zero vector. Here that is an extra start symbol, the last id of the vocabulary, whose
  embedding is zero and whose bias in the softmax keeps its probability at exactly zero.
- Its layer norms divide by sqrt(variance + 1e-5), ours by sqrt(variance + 1e-6), and it has no setting for that. This
  difference remains: log-probabilities differ a little, and now and then another hypothesis wins.
- Its search ranks hypotheses by log-probability / length^penalty; ours, as Wu et al. (2016), by log-probability /
  ((5 + length) / 6)^alpha. Both rank alike at 0. `generation_config.json` sets its penalty to our alpha.

The folder is written with the `safetensors` library alone: `transformers` is needed to open it, not to write it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from repro.data.tokenizer import Tokenizer
from repro.decoding.search import PAPER_SEARCH
from repro.model.attention import MultiHeadAttention
from repro.model.layers import EncoderLayer
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import EOS, PAD, SPECIAL
from repro.model.transformer import Transformer
from repro.storage import atomic

START = "<s>"  # what MarianMT's decoder reads first
# A logit whose exponential is exactly 0 in float32 beside any other above -96. Half precision can hold it. As a class
# in a label-smoothed loss it adds 200 epsilon / V.
NEVER = -200.0
LONGEST = 1_024  # tokens of a sentence: the number of positions that `transformers` computes when it opens a model
LONGEST_OUTPUT = 512  # tokens: its search has one limit for all sentences, ours is the source length plus 50
WEIGHTS_FILE = "model.safetensors"


def export_marian(model: TranslationSystem, tokenizer: Tokenizer, folder: Path) -> None:
    """Write weights, tokenizer and configuration to `folder`. Raises ValueError for what MarianMT cannot express."""
    refuse_marian(model)
    assert isinstance(model, Transformer)
    size = len(model.embedding.weight)
    write_tensors(folder / WEIGHTS_FILE, dict(_tensors(model)))
    atomic.write_json(folder / "config.json", _config(model))
    atomic.write_json(folder / "generation_config.json", _generation(size))
    atomic.write_json(folder / "tokenizer_config.json", _tokenizer_config())
    tokenizer.save(folder / "tokenizer.json")
    plain = json.loads((folder / "tokenizer.json").read_bytes())
    atomic.write_json(folder / "tokenizer.json", _with_symbols(plain, size))


def refuse_marian(model: TranslationSystem) -> None:
    """Raise ValueError for a model that is not the Transformer as printed, with d_k = d_v = d_model / h."""
    other = "Export it with --format safetensors, which keeps any row"
    if not isinstance(model, Transformer) or not model.in_ctranslate2:
        raise ValueError(f"MarianMT is the Transformer as printed, and this one has other parts. {other}.")
    if "source_positions.weight" in model.state_dict():
        raise ValueError(
            f"MarianMT has sinusoids for positions, and this one learned its own. {other}, or to ctranslate2."
        )
    attention = model.decoder_layers[0].self_attention
    width = model.embedding.weight.shape[1] / attention.n_heads
    if not attention.d_k == attention.d_v == width:
        raise ValueError(
            f"MarianMT has heads as wide as d_model / h, here {width:g}; this one has d_k = {attention.d_k} and "
            f"d_v = {attention.d_v}. {other}, or to ctranslate2."
        )


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write named tensors to a file in the format of `safetensors`, completely or not at all."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    atomic.write_bytes(path, safetensors.torch.save(whole, metadata={"format": "pt"}))


def _tensors(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    """The weights under MarianMT's names, with the dimensions in its order."""
    d_model = model.embedding.weight.shape[1]
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])  # sines, then cosines
    matrix = model.embedding.weight.detach().cpu()
    yield "model.shared.weight", torch.cat([matrix, matrix.new_zeros(1, d_model)])[:, order]
    bias = torch.zeros(1, len(matrix) + 1)
    bias[0, -1] = NEVER
    yield "final_logits_bias", bias
    for i, encoding in enumerate(layer for layer in model.encoder if isinstance(layer, EncoderLayer)):
        yield from _layer(f"model.encoder.layers.{i}", encoding, {"self_attn": encoding.self_attention}, order)
    for i, decoding in enumerate(model.decoder_layers):
        attentions = {"self_attn": decoding.self_attention, "encoder_attn": decoding.cross_attention}
        yield from _layer(f"model.decoder.layers.{i}", decoding, attentions, order)


def _layer(
    name: str, layer: Any, attentions: dict[str, MultiHeadAttention], order: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """One layer: its attentions, its feed-forward network and the norm after each; our norms are in this order."""
    for theirs, ours in attentions.items():
        widths = [ours.n_heads * d for d in (ours.d_k, ours.d_k, ours.d_v)]
        parts = zip(
            "qkv", ours.weight.detach().cpu().split(widths), ours.bias.detach().cpu().split(widths), strict=True
        )
        for letter, weight, bias in parts:
            yield f"{name}.{theirs}.{letter}_proj.weight", weight[:, order]
            yield f"{name}.{theirs}.{letter}_proj.bias", bias
        yield f"{name}.{theirs}.out_proj.weight", ours.output.weight.detach().cpu()[order]
        yield f"{name}.{theirs}.out_proj.bias", ours.output.bias.detach().cpu()[order]
    up, _, down = layer.feed_forward
    yield f"{name}.fc1.weight", up.weight.detach().cpu()[:, order]
    yield f"{name}.fc1.bias", up.bias.detach().cpu()
    yield f"{name}.fc2.weight", down.weight.detach().cpu()[order]
    yield f"{name}.fc2.bias", down.bias.detach().cpu()[order]
    norms = [*(f"{theirs}_layer_norm" for theirs in attentions), "final_layer_norm"]
    for theirs, norm in zip(norms, layer.norms, strict=True):
        yield f"{name}.{theirs}.weight", norm.weight.detach().cpu()[order]
        yield f"{name}.{theirs}.bias", norm.bias.detach().cpu()[order]


def _config(model: Transformer) -> dict[str, Any]:
    """config.json: the model's sizes under MarianMT's names."""
    size, d_model = model.embedding.weight.shape
    first: Any = model.decoder_layers[0]
    n_layers = len(model.decoder_layers)
    sizes: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sizes |= {
            f"{side}_layers": n_layers,
            f"{side}_attention_heads": first.self_attention.n_heads,
            f"{side}_ffn_dim": first.feed_forward[0].out_features,
            f"{side}_layerdrop": 0.0,
        }
    return sizes | {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "d_model": d_model,
        "vocab_size": size + 1,
        "decoder_vocab_size": size + 1,
        "activation_function": "relu",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "add_final_layer_norm": False,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": LONGEST,
        "dropout": first.dropout.p,
        "attention_dropout": 0.0 if first.self_attention.dropout is None else first.self_attention.dropout.p,
        "activation_dropout": 0.0,
        "use_cache": True,
        "dtype": "float32",
        **_symbols(size),
    }


def _generation(size: int) -> dict[str, Any]:
    """generation_config.json: the paper's search, as far as `transformers` has it."""
    return _symbols(size) | {
        "num_beams": PAPER_SEARCH.beam,
        "length_penalty": PAPER_SEARCH.alpha,
        "early_stopping": False,
        "max_length": LONGEST_OUTPUT,
        "suppress_tokens": [PAD],  # padding has a share of the probability, but is never written
    }


def _symbols(size: int) -> dict[str, Any]:
    return {
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": size,
        "decoder_start_token_id": size,
        "forced_eos_token_id": None,  # a translation that is too long is cut, without an end symbol
    }


def _tokenizer_config() -> dict[str, Any]:
    """tokenizer_config.json. The letters "</s>" in a text are plain text, as in our tokenizer."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[PAD],
        "eos_token": SPECIAL[EOS],
        "bos_token": START,
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": LONGEST,
        "model_input_names": ["input_ids", "attention_mask"],
    }


def _with_symbols(plain: dict[str, Any], size: int) -> dict[str, Any]:
    """tokenizer.json: our tokenizer, with the names of the symbols and an end symbol after each line added."""
    symbols = [
        {"id": id, "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False}
        for id, name in ((PAD, SPECIAL[PAD]), (EOS, SPECIAL[EOS]), (size, START))
    ]
    end = {"SpecialToken": {"id": SPECIAL[EOS], "type_id": 0}}
    after = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, end],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}, end],
        "special_tokens": {SPECIAL[EOS]: {"id": SPECIAL[EOS], "ids": [EOS], "tokens": [SPECIAL[EOS]]}},
    }
    return plain | {"added_tokens": symbols, "post_processor": after}
