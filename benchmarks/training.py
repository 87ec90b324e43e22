"""Tokens per second of a training step: ours against a plain `torch.nn.Transformer` loop.

Sizes and workload are those that toolkits were measured with: log-normal lengths (mean 28, at most 100), pieces by
Zipf's law, batches of like length of at most 2,048 slots a side. Each side runs in a process of its own, all are kept
alive and take turns, one pass over the batches each, so whatever else the machine does hits all alike. Printed are
medians over the passes, of real source + target pieces per second, and the ratio to the plain loop.

Run:  python benchmarks/training.py --size small          (about a minute)
      python benchmarks/training.py --size base --passes 3
"""

import argparse
import math
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection

import torch
from torch import Tensor, nn

from repro import machine
from repro.hyper import BASE, Hyper
from repro.model.transformer import Transformer
from repro.symbols import PAD
from repro.training.loss import smoothed_cross_entropy

SIZES: dict[str, tuple[Hyper, int, int]] = {  # hyper-parameters, vocabulary, batches in a pass
    "small": (replace(BASE, n_layers=2, d_model=128, d_ff=512, n_heads=4, d_k=32, d_v=32), 8_000, 8),
    "base": (BASE, 37_000, 2),
    "laptop": (replace(BASE, n_layers=3, d_model=64, d_ff=256, d_k=8, d_v=8), 3_000, 16),
}
SIDES = ("plain", "plain, tuned process", "ours", "ours, untuned process")
Batch = tuple[Tensor, Tensor, Tensor]  # source [B, S], decoder_in [B, T], target [B, T]


def batches(n: int, vocab_size: int, slots: int = 2_048) -> list[Batch]:
    """The same batches for all sides: n of them, spread over all lengths."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randn(40 * n, 2, generator=generator).mul(0.5).add(math.log(25)).exp().clamp(2, 99)
    lengths[:, 1] = lengths[:, 0] * (1 + 0.1 * torch.randn(len(lengths), generator=generator))
    lengths = lengths.long().clamp(2, 99).add(1)
    order = lengths.amax(1).argsort()
    zipf = 1.0 / torch.arange(1, vocab_size - 1)

    def side(rows: Tensor) -> Tensor:
        ids = torch.multinomial(zipf, len(rows) * int(rows.max()), True, generator=generator) + 2
        ids = ids.view(len(rows), -1)
        return ids.masked_fill(torch.arange(ids.shape[1]) >= rows[:, None], PAD)

    made = []
    for place in torch.linspace(0, len(order) - 1, n).long().tolist():
        longest = int(lengths[order[place]].max())
        rows = lengths[order[max(0, place - slots // longest) : place + 1]][: slots // longest]
        target = side(rows[:, 1])
        decoder_in = torch.cat([torch.full_like(target[:, :1], PAD), target[:, :-1]], dim=1)
        made.append((side(rows[:, 0]), decoder_in, target))
    return made


class Plain(nn.Module):
    """What one writes first: `torch.nn.Transformer`, tied embedding, `F.cross_entropy`."""

    positions: Tensor

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__()
        d = hyper.d_model
        self.embedding = nn.Embedding(vocab_size, d, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        self.transformer = nn.Transformer(
            d, hyper.n_heads, hyper.n_layers, hyper.n_layers, hyper.d_ff, hyper.dropout, batch_first=True
        )
        self.register_buffer("positions", torch.randn(128, d))
        self.dropout = nn.Dropout(hyper.dropout)
        self.epsilon = hyper.label_smoothing

    def loss(self, source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        """Mean smoothed cross-entropy of the real targets."""

        def embed(ids: Tensor) -> Tensor:
            x = self.embedding(ids) * self.embedding.embedding_dim**0.5
            return self.dropout(x + self.positions[: ids.shape[1]])

        causal = nn.Transformer.generate_square_subsequent_mask(decoder_in.shape[1])
        hidden_source = torch.zeros(source.shape).masked_fill(source == PAD, -math.inf)
        hidden = self.transformer(
            embed(source), embed(decoder_in), tgt_mask=causal, tgt_is_causal=True,
            src_key_padding_mask=hidden_source, memory_key_padding_mask=hidden_source,
        )  # fmt: skip
        logits = hidden @ self.embedding.weight.T
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=self.epsilon
        )


class Ours(Transformer):
    """The suite's model and loss."""

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__(hyper, vocab_size)
        self.epsilon = hyper.label_smoothing

    def loss(self, source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        """Mean smoothed cross-entropy of the real targets."""
        hidden = self.decode(decoder_in, self.encode(source), source)
        total, _ = smoothed_cross_entropy(hidden, self.embedding.weight, target, self.epsilon)
        return total / (target != PAD).sum()


def contestant(side: str, size: str, bf16: bool, pipe: Connection) -> None:
    """Answer each "go" with the seconds of one pass and the tokens in it."""
    if side in ("ours", "plain, tuned process"):
        machine.tune(2_048 * SIZES[size][0].d_model ** 2)
    hyper, vocab_size, n = SIZES[size]
    torch.manual_seed(0)
    model = (Ours if side.startswith("ours") else Plain)(hyper, vocab_size)
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=side.startswith("ours"))
    work = batches(n, vocab_size)
    tokens = sum(int((ids != PAD).sum()) for source, _, target in work for ids in (source, target))
    while pipe.recv() == "go":
        started = time.perf_counter()
        for batch in work:
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = model.loss(*batch)
            loss.backward()
            adam.step()
            adam.zero_grad()
        pipe.send((time.perf_counter() - started, tokens, machine.peak_memory()))


def compare(size: str, passes: int, bf16: bool) -> Iterator[str]:
    """One line a side."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for side in SIDES:
        pipes[side], theirs = context.Pipe()
        context.Process(target=contestant, args=(side, size, bf16, theirs), daemon=True).start()
    results: dict[str, list[tuple[float, int, int]]] = {side: [] for side in SIDES}
    for number in range(passes + 1):
        for side in SIDES:
            pipes[side].send("go")
            answer = pipes[side].recv()
            if number:  # the first pass warms up
                results[side].append(answer)
    for pipe in pipes.values():
        pipe.send("stop")
    speed = {side: [tokens / seconds for seconds, tokens, _ in runs] for side, runs in results.items()}
    plain = statistics.median(speed["plain"])
    for side in SIDES:
        median, low, high = statistics.median(speed[side]), min(speed[side]), max(speed[side])
        memory = results[side][-1][2] / 2**20
        yield (
            f"{side:<24}{median:>10,.0f} tokens/s  ({low:,.0f} to {high:,.0f})  x {median / plain:.2f}"
            f"  peak {memory:,.0f} MiB"
        )


def main() -> None:
    """Compare at one size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    kind = "bf16 autocast" if options.bf16 else "fp32"
    print(f"{options.size}, {kind}, {torch.get_num_threads()} threads, medians of {options.passes} passes")
    for line in compare(options.size, options.passes, options.bf16):
        print(line, flush=True)


if __name__ == "__main__":
    main()
