"""Translation: this suite's search against CTranslate2, on the same weights and the same sentences.

The model is random, but writes sentences of about 25 tokens (`rambling`): one coordinate holds only the position and
a little of the source, and the end symbol reads it. Sources are log-normal (about 28 tokens). Each engine runs in a
process of its own; all stay alive and take turns on all sentences, so other work on the machine slows all alike. It
prints medians over the turns: per second of the process's own CPU time and per second on the clock. Ratios are to
CTranslate2 in float32, of CPU time with one thread and of the clock with more, turn by turn. Tokens are those written,
end symbols included. CTranslate2 stops sooner, when as many hypotheses have ended as the beam is wide; this suite stops
when no live hypothesis can win. `same` counts the sentences whose translation is that of this suite in float32.

Run:  python benchmarks/decode.py                                     (base size, one thread: about five minutes)
      python benchmarks/decode.py --size small --threads 1 2 --json decode.json
"""

import math
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from command import new_parser, save, show
from numpy.typing import NDArray
from torch import Tensor

from repro.data.shards import Encoded
from repro.decoding.ctranslate import export, load, translate_ctranslate2
from repro.decoding.search import PAPER_SEARCH as SEARCH
from repro.decoding.translate import translate
from repro.model.config import BASE, Hyper
from repro.model.special_tokens import EOS
from repro.model.transformer import Transformer
from repro.results.provenance import provenance
from repro.training import cpu_tuning

SIZES: dict[str, tuple[Hyper, int]] = {  # hyper-parameters, vocabulary
    "small": (replace(BASE, n_layers=2, d_model=128, d_ff=512, n_heads=4, d_k=32, d_v=32), 8_000),
    "base": (BASE, 37_000),
}
FIRST = "CTranslate2 float32"  # what the others are compared with
ENGINES = (FIRST, "CTranslate2 int8", "ours float32", "ours bfloat16")
LENGTH, SPREAD = 35, 5  # of the outputs, in tokens; a beam finds the earlier ends, about 25


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one engine measured in one turn."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    tokens: int
    outputs: list[Sequence[int]]


def sources(n: int, vocab_size: int) -> Encoded:
    """The n sentences that all engines translate."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(math.log(25), 0.5, n), 2, 99).astype(np.int64)
    return encoded([np.append(2 + random.zipf(1.2, length) % (vocab_size - 2), EOS) for length in lengths])


def encoded(sentences: Sequence[NDArray[np.int64]]) -> Encoded:
    """These sentences, one after the other."""
    ids = np.concatenate([np.empty(0, np.uint16), *sentences], dtype=np.uint16, casting="unsafe")
    return Encoded(ids, np.cumsum([0, *map(len, sentences)]))


@torch.no_grad()
def rambling(
    hyper: Hyper, vocab_size: int, *, length: int = LENGTH, spread: int = SPREAD, heard: float = 1.0
) -> Transformer:
    """A random model whose sentences end after about `length` tokens, and whose hypotheses are contested.

    `heard` is how strongly the source affects the decoder.
    """
    torch.manual_seed(0)
    model = Transformer(hyper, vocab_size).eval()
    clock = 2 * round(hyper.d_model * math.log(40) / math.log(10_000) / 2)  # a sine that rises over 60 positions
    for layer in (*model.encoder, *model.decoder):
        for name, weight in layer.named_parameters():
            if name.endswith(("output.weight", "feed_forward.2.weight")):
                # a layer changes its input a little, as a trained one does; a source, heard as an average, more
                weight *= heard if name.startswith("cross_attention") else 0.3
                if layer in model.decoder:
                    weight[clock] = 0
    last = model.decoder_layers[-1]
    of_source = last.cross_attention.output.weight[clock]
    of_source.normal_()
    model.embedding.weight[:, clock] = 0
    model.embedding.weight[EOS] = 0
    model.embedding.weight[EOS, clock] = 1
    norm = last.norms[-1]
    # random signs: no token predicts itself, though embedding and output share a matrix
    signs = 2.0 * torch.randint(0, 2, (hyper.d_model,)) - 1
    norm.weight.copy_(5.0 * signs)  # peaked
    norm.weight[clock] = 1

    text = torch.randint(2, vocab_size, (64, length + 5))

    def hidden() -> Tensor:
        return model.decode(text, model.encode(text), text)

    def per_token() -> Tensor:
        """How much the clock coordinate advances per token."""
        return (hidden()[:, -1, clock] - hidden()[:, -11, clock]).mean() / 10

    for _ in range(3):  # repeated, as the norm after it makes the two depend on each other a little
        of_source *= per_token() * spread / hidden()[:, length - 1, clock].std()
    norm.weight[clock] = 3.0 / per_token()  # the end grows likelier by e^3 a token
    at_length = hidden()[:, length - 1]
    usual = model.embedding.logits(at_length)[:, EOS + 1 :].logsumexp(1).mean()
    norm.bias[clock] = usual - at_length[:, clock].mean()
    return model


def contestant(engine: str, size: str, n: int, threads: int, folder: Path, pipe: Connection) -> None:
    """Run one engine: answer each "go" with one turn."""
    torch.set_num_threads(threads)
    hyper, vocab_size = SIZES[size]
    text = sources(n, vocab_size)
    name, dtype = engine.split()
    run: Callable[[], list[Sequence[int]]]
    if name == "ours":
        model = rambling(hyper, vocab_size)
        cpu_tuning.tune(SEARCH.beam * n * hyper.d_model**2)
        bf16 = dtype == "bfloat16"
        run = lambda: ours(model, text, bf16)  # noqa: E731
    else:
        translator = load(folder, compute_type=dtype, threads=threads)
        run = lambda: translate_ctranslate2(translator, text)  # noqa: E731
    while pipe.recv() == "go":
        memory = cpu_tuning.PeakMemory()
        clock, cpu = time.perf_counter(), time.process_time()
        outputs = run()
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        peak, tokens = memory.bytes() or 0, sum(len(ids) + 1 for ids in outputs)
        pipe.send(Turn(seconds=clock, cpu_seconds=cpu, peak_bytes=peak, tokens=tokens, outputs=outputs))


def ours(model: Transformer, text: Encoded, bf16: bool) -> list[Sequence[int]]:
    """Translate by this suite's search, as a run does."""
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        return translate(model, text)


def turns(size: str, n: int, threads: int, passes: int, folder: Path) -> dict[str, list[Turn]]:
    """What each engine measured, turn by turn; the first turn warms up and is dropped."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for engine in ENGINES:
        pipes[engine], theirs = context.Pipe()
        arguments = (engine, size, n, threads, folder, theirs)
        context.Process(target=contestant, args=arguments, daemon=True).start()
    measured: dict[str, list[Turn]] = {engine: [] for engine in ENGINES}
    for number in range(passes + 1):
        for engine, pipe in pipes.items():
            pipe.send("go")
            answer = pipe.recv()
            if number:
                measured[engine].append(answer)
    for pipe in pipes.values():
        pipe.send("stop")
    return measured


def table(measured: dict[str, list[Turn]], threads: int) -> list[dict[str, str | float]]:
    """One line an engine."""

    def seconds(turn: Turn) -> float:
        return turn.cpu_seconds if threads == 1 else turn.seconds

    lines = []
    for engine, all_turns in measured.items():
        one = all_turns[0]
        n = len(one.outputs)
        median = {
            name: statistics.median(getattr(turn, name) for turn in all_turns) for name in ("seconds", "cpu_seconds")
        }
        ratios = [seconds(theirs) / seconds(turn) for turn, theirs in zip(all_turns, measured[FIRST], strict=True)]
        same = [a == b for a, b in zip(one.outputs, measured["ours float32"][0].outputs, strict=True)]
        lines.append(
            {
                "engine": engine,
                "threads": threads,
                "sentences per CPU second": n / median["cpu_seconds"],
                "sentences per second": n / median["seconds"],
                "pieces per CPU second": one.tokens / median["cpu_seconds"],
                "pieces per second": one.tokens / median["seconds"],
                "ratio": statistics.median(ratios),
                "lowest ratio": min(ratios),
                "highest ratio": max(ratios),
                "peak MiB": max(turn.peak_bytes for turn in all_turns) / 2**20,
                "pieces per sentence": one.tokens / n,
                "same": sum(same) / n,
            }
        )
    return lines


def main() -> None:
    """Compare at one size."""
    parser = new_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--sentences", type=int, default=96)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as name:
        export(rambling(*SIZES[options.size]), Path(name))
        for threads in options.threads:
            lines += table(turns(options.size, options.sentences, threads, options.turns, Path(name)), threads)
            show(lines)
    origin = provenance("cpu")
    versions = {**origin["versions"], "ctranslate2": version("ctranslate2")}
    settings = {"size": options.size, "sentences": options.sentences, "beam": SEARCH.beam, "alpha": SEARCH.alpha}
    stamp = {**origin, "versions": versions, "n_threads": options.threads}
    save(options.json, {"settings": settings, "lines": lines}, stamp)


if __name__ == "__main__":
    main()
