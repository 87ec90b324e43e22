"""The peers of `benchmarks/train.py`: what is trained besides this suite, as shipped by its makers.

This file runs in the peers' own environments and so imports nothing of the suite. Each builder gives a model, a
function `loss(source, decoder_in, target)` that returns a scalar to minimise, and an optimizer. All have three-way tied
embeddings, the paper's dropout and label smoothing; everything else is the peer's own default. Toolkits too old for
today's PyTorch are installed without their dependencies, and stand-ins made here let them be imported; nothing that
they compute is changed.
"""

import argparse
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import math
import resource
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

PAD = 0
BETAS, EPS = (0.9, 0.98), 1e-9


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a model."""

    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    vocab_size: int
    dropout: float = 0.1
    label_smoothing: float = 0.1


Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
Built = tuple[nn.Module, Loss, torch.optim.Optimizer]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """How a contestant is built, and what has to be installed for it, in an environment of its own."""

    build: Callable[[Size], Built]
    install: Sequence[str] = ()
    before: Sequence[str] = ()  # packages that its build needs


class Turns:
    """A contestant's side of the conversation: it waits for its turn, and reports what the turn took."""

    def __init__(self) -> None:
        self.answers, sys.stdout = sys.stdout, sys.stderr  # prints of libraries must not be taken for an answer

    def wait(self) -> bool:
        """Wait for the next turn; False if there is none."""
        go = sys.stdin.readline() == "go\n"
        self.began = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        return go

    def done(self, **facts: object) -> None:
        """Report the turn."""
        wall, before = self.began
        after = resource.getrusage(resource.RUSAGE_SELF)
        answer = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "system_seconds": after.ru_stime - before.ru_stime,
            "page_faults": after.ru_minflt - before.ru_minflt,
            "peak_bytes": after.ru_maxrss * 1024,
            **facts,
        }
        print(json.dumps(answer), file=self.answers, flush=True)


def in_turns(built: Built, batches: Sequence[tuple[Tensor, ...]], per_turn: int, bf16: bool, **facts: object) -> None:
    """The plain loop: forward, loss, backward, optimizer; `per_turn` batches a turn, without data pipeline."""
    _, loss, optimizer = built
    turns, place = Turns(), 0
    while turns.wait():
        for batch in batches[place : place + per_turn]:
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                value = loss(*batch)
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
        place += per_turn
        turns.done(loss=value.item(), **facts)


def read_batches(path: Path) -> list[tuple[Tensor, ...]]:
    """source [B, S], decoder_in [B, T], target [B, T] of each batch."""
    with np.load(path) as file:
        ids = [torch.from_numpy(file[name]) for name in file.files]
    return [tuple(ids[i : i + 3]) for i in range(0, len(ids), 3)]


class _Reference(nn.Module):
    """The obvious first version: `torch.nn.Transformer`, a tied embedding, `F.cross_entropy`."""

    positions: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        d, n = size.d_model, size.n_layers
        self.size = size
        self.embedding = nn.Embedding(size.vocab_size, d, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        self.transformer = nn.Transformer(d, size.n_heads, n, n, size.d_ff, size.dropout, batch_first=True)
        self.register_buffer("positions", torch.randn(128, d))
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        """Mean smoothed cross-entropy of the real targets."""
        causal = nn.Transformer.generate_square_subsequent_mask(decoder_in.shape[1])
        hidden_source = torch.zeros(source.shape).masked_fill(source == PAD, -math.inf)
        hidden = self.transformer(
            self._embed(source), self._embed(decoder_in), tgt_mask=causal, tgt_is_causal=True,
            src_key_padding_mask=hidden_source, memory_key_padding_mask=hidden_source,
        )  # fmt: skip
        logits = hidden @ self.embedding.weight.T
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=self.size.label_smoothing
        )

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * self.size.d_model**0.5
        return self.dropout(x + self.positions[: ids.shape[1]])


def reference(size: Size) -> Built:
    """A plain loop over `torch.nn.Transformer`, PyTorch's defaults throughout."""
    model = _Reference(size)
    return model, model, torch.optim.Adam(model.parameters(), lr=1e-4, betas=BETAS, eps=EPS)


def marian(size: Size) -> Built:
    """Hugging Face's MarianMT: its model, its `LabelSmoother`, its trainer's default optimizer."""
    transformers: Any = importlib.import_module("transformers")
    smoother = importlib.import_module("transformers.trainer_pt_utils").LabelSmoother
    model = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=size.vocab_size, d_model=size.d_model, max_position_embeddings=256,
            encoder_layers=size.n_layers, decoder_layers=size.n_layers,
            encoder_attention_heads=size.n_heads, decoder_attention_heads=size.n_heads,
            encoder_ffn_dim=size.d_ff, decoder_ffn_dim=size.d_ff, dropout=size.dropout,
            activation_function="relu", scale_embedding=True,
            pad_token_id=PAD, eos_token_id=1, forced_eos_token_id=1, decoder_start_token_id=PAD,
        )
    )  # fmt: skip
    model.train()
    smooth = smoother(epsilon=size.label_smoothing)

    def loss(source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        real = source != PAD
        answer = model(input_ids=source, attention_mask=real.long(), decoder_input_ids=decoder_in, use_cache=False)
        return smooth(answer, target.masked_fill(target == PAD, -100))

    # what transformers.TrainingArguments asks for by default: adamw_torch_fused
    return model, loss, torch.optim.AdamW(model.parameters(), lr=1e-4, betas=BETAS, eps=EPS, fused=True)


def fairseq(size: Size) -> Built:
    """fairseq's Transformer, criterion and Adam."""
    _hashable_dataclasses("fairseq")
    warnings.filterwarnings("ignore")
    logging.disable(logging.INFO)
    models: Any = importlib.import_module("fairseq.models.transformer")
    data: Any = importlib.import_module("fairseq.data")
    criterions: Any = importlib.import_module("fairseq.criterions.label_smoothed_cross_entropy")
    optim: Any = importlib.import_module("fairseq.optim.adam")

    dictionary = data.Dictionary()
    while len(dictionary) < size.vocab_size:
        dictionary.add_symbol(str(len(dictionary)))
    config = models.TransformerConfig()
    config.share_all_embeddings, config.dropout = True, size.dropout
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = size.d_model, size.d_ff
        side.layers, side.attention_heads = size.n_layers, size.n_heads
    config.decoder.input_dim = config.decoder.output_dim = size.d_model
    task = argparse.Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    model = models.TransformerModelBase.build_model(config, task)
    criterion = criterions.LabelSmoothedCrossEntropyCriterion(
        task, sentence_avg=False, label_smoothing=size.label_smoothing
    )
    ours_to_theirs = torch.arange(size.vocab_size)
    ours_to_theirs[[PAD, 1]] = torch.tensor([dictionary.pad(), dictionary.bos()])  # in fairseq padding is 1

    def loss(source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        source, decoder_in, target = (ours_to_theirs[ids] for ids in (source, decoder_in, target))
        real = target != dictionary.pad()
        decoder_in = decoder_in.clone()
        decoder_in[:, 0] = dictionary.eos()
        lengths = (source != dictionary.pad()).sum(1)
        n_tokens = int(real.sum())
        inputs = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": decoder_in}
        total, n, _ = criterion(model, {"net_input": inputs, "target": target, "ntokens": n_tokens})
        return total / n

    return model, loss, optim.Adam(model.parameters(), lr=1e-4, betas=BETAS, eps=EPS)


def opennmt(size: Size) -> Built:
    """OpenNMT-py's Transformer, loss with its statistics, and the optimizer it makes for `adam`."""
    warnings.filterwarnings("ignore")
    _stand_in("ahocorasick", "configargparse", "ctranslate2", "fasttext", "pyonmttok", "rapidfuzz", "spacy", "waitress")
    encoders: Any = importlib.import_module("onmt.encoders.transformer")
    decoders: Any = importlib.import_module("onmt.decoders.transformer")
    models: Any = importlib.import_module("onmt.models.model")
    modules: Any = importlib.import_module("onmt.modules")
    losses: Any = importlib.import_module("onmt.utils.loss")

    embeddings = modules.Embeddings(size.d_model, size.vocab_size, PAD, position_encoding=True, dropout=size.dropout)
    common = {
        "num_layers": size.n_layers, "d_model": size.d_model, "heads": size.n_heads, "d_ff": size.d_ff,
        "dropout": size.dropout, "attention_dropout": 0.0, "embeddings": embeddings,
        "max_relative_positions": 0, "relative_positions_buckets": 0,
    }  # fmt: skip
    encoder = encoders.TransformerEncoder(**common)
    decoder = decoders.TransformerDecoder(
        **common, copy_attn=False, self_attn_type="scaled-dot", aan_useffn=False,
        full_context_alignment=False, alignment_layer=-3, alignment_heads=0,
    )  # fmt: skip
    model = models.NMTModel(encoder, decoder)
    model.generator = nn.Linear(size.d_model, size.vocab_size)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    model.generator.weight = embeddings.word_lut.weight  # share_decoder_embeddings
    model.train()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=size.label_smoothing)
    compute = losses.LossCompute(criterion, model.generator)

    def loss(source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        lengths = (source != PAD).sum(1)
        start = torch.full_like(target[:, :1], 1)
        written = torch.cat([start, target], dim=1).unsqueeze(-1)
        output, attention = model(source.unsqueeze(-1), written, lengths)
        total, _ = compute({"tgt": written, "srclen": lengths}, output, attention)
        return total / (target != PAD).sum()

    return model, loss, torch.optim.Adam(model.parameters(), lr=1e-4, betas=BETAS, eps=EPS)


PEERS = {
    "reference": Peer(build=reference),
    "marian": Peer(build=marian, install=["transformers==5.23.0", "typer", "shellingham"]),
    "fairseq": Peer(
        build=fairseq,
        before=["packaging", "wheel", "setuptools==65.5.0", "cython", "numpy==1.26.4"],
        install=["fairseq==0.12.2", "hydra-core==1.3.2", "omegaconf==2.3.0", "antlr4-python3-runtime==4.9.3",
                 "bitarray"],
    ),
    "opennmt": Peer(build=opennmt, install=["OpenNMT-py==3.5.1"]),
}  # fmt: skip


def _hashable_dataclasses(package: str) -> None:
    """Let the dataclasses of a package be defaults of each other: from Python 3.11 on that needs a hash."""
    plain: Any = dataclasses.dataclass

    def hashable(cls: type | None = None, /, **options: Any) -> Any:
        def wrap(cls: type) -> type:
            asked = {"unsafe_hash": True} if cls.__module__.startswith(package) else {}
            return plain(cls, **{**options, **asked})

        return wrap if cls is None else wrap(cls)

    dataclasses.dataclass = hashable


class _StandIn(types.ModuleType):
    """A module in which every name is an empty class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _stand_in(*names: str) -> None:
    """Make these modules importable: they are not installed, and training does not use them."""

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
            if name.split(".")[0] in names:
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            return None

        def create_module(self, spec: Any) -> types.ModuleType:
            return _StandIn(spec.name)

        def exec_module(self, module: types.ModuleType) -> None:
            pass

    sys.meta_path.append(Finder())


def main() -> None:
    """Take part as one peer."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--size", type=json.loads, help="JSON of a `Size`")
    parser.add_argument("--work", type=Path, help="file of batches")
    parser.add_argument("--per-turn", type=int)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    in_turns(
        PEERS[options.peer].build(Size(**options.size)), read_batches(options.work), options.per_turn, options.bf16,
        threads=torch.get_num_threads(), torch=torch.__version__,
    )  # fmt: skip


if __name__ == "__main__":
    main()
