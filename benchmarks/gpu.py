"""Everything about speed on one GPU in one call: is it right, how fast, where does the time go, what each part gains.

1. `correct`: loss and gradient of one update by each fast path against float64 by the plain one.
2. `limits`: the card's own rate of bfloat16 matrix products and of copying, as measured here.
3. `steps`: the paper's base and big models at 25,000 + 25,000 tokens a step, loader included; base also without each
   technique. MFU counts the model's operations on real tokens only (`repro/model/cost.py`), of the measured rate.
4. `parts`: the time of a step by kind of kernel, and the gaps between kernels.

Run:  python benchmarks/gpu.py --json gpu.json          (minutes)
      python benchmarks/gpu.py --rehearse               (tiny, on whatever is there: shows that the script runs)
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from command import new_parser, save
from torch import Tensor

from repro.data import batching
from repro.data.batch import Batch, TrainingBatches
from repro.data.batching import by_tokens
from repro.data.shards import Encoded
from repro.model.config import BASE, Hyper
from repro.model.cost import TextSizes, training_flops
from repro.model.loss import smoothed_cross_entropy
from repro.model.special_tokens import EOS, PAD
from repro.results.provenance import provenance
from repro.training import cpu_tuning
from repro.training.module import TranslationModule

BIG = replace(BASE, d_model=1024, d_ff=4096, n_heads=16, dropout=0.3)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How large everything is."""

    models: dict[str, tuple[Hyper, int]]  # hyper-parameters, vocabulary
    tokens: int  # a side, in a step
    pairs: int
    warm: int = 10
    steps: int = 20


WHOLE = Plan(models={"base": (BASE, 37_000), "big": (BIG, 37_000)}, tokens=25_000, pairs=200_000)
TINY_HYPER = replace(BASE, n_layers=1, d_model=64, d_ff=64, n_heads=2, d_k=32, d_v=32)
REHEARSAL = Plan(models={"tiny": (TINY_HYPER, 500)}, tokens=600, pairs=900, warm=2, steps=2)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The techniques, each of which can be left out."""

    bf16: bool = True
    packed: bool = True
    compiled: bool = True
    fused_loss: bool = True
    fused_adam: bool = True


ABLATIONS = {"all": Ways()} | {f"without {name}": Ways(**{name: False}) for name in vars(Ways()) if name != "packed"}
# a run compiles no padded batches: each has its own shape, and each shape is compiled anew
ABLATIONS["without packed or compiled"] = Ways(packed=False, compiled=False)


def text(pairs: int, vocab_size: int) -> tuple[Encoded, Encoded]:
    """Sentences as long as the news: log-normal, 28 tokens in the mean, at most 100."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(np.log(25), 0.5, pairs), 2, 99).astype(np.int64) + 1
    others = np.clip(np.rint(lengths * random.normal(1, 0.1, pairs)), 2, 100).astype(np.int64)

    def side(of: Any) -> Encoded:
        offsets = np.append(0, np.cumsum(of))
        ids = random.integers(2, vocab_size, offsets[-1]).astype(np.uint16)
        ids[offsets[1:] - 1] = EOS
        return Encoded(ids, offsets)

    return side(lengths), side(others)


def batches(source: Encoded, target: Encoded, tokens: int, *, packed: bool) -> Iterator[Batch]:
    """Endless batches of training."""
    plan = batching.Plan(source.lengths, target.lengths, budget=tokens, batch_by=by_tokens, data_hash="gpu", seed=1)
    return iter(TrainingBatches(source, target, plan, accumulate=1, start=0, rank=0, world=1, packed=packed))


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch on the device, without waiting, as a run moves it."""
    return (batch.pin_memory() if device.type == "cuda" else batch).to(device)


class Step:
    """A training step with some of the techniques."""

    def __init__(self, hyper: Hyper, vocab_size: int, ways: Ways, device: torch.device, system: Any = None) -> None:
        self.model = TranslationModule(hyper, vocab_size, 1, system).to(device).train().model
        self.ways, self.hyper, self.device = ways, hyper, device
        if ways.compiled:
            self.model.compile_layers("inductor" if device.type == "cuda" else "aot_eager")
        kind = {"fused": True} if ways.fused_adam else {"foreach": True}
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, **kind)

    def loss(self, batch: Batch) -> Tensor:
        model = self.model
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.ways.bf16):
            hidden = model.decode(batch.decoder_in, model.encode(batch.source), batch.source).flatten(0, -2)
            target, weight = batch.target.flatten(), model.embedding.weight
            if self.ways.fused_loss:
                loss, _ = smoothed_cross_entropy(hidden, weight, target, self.hyper.label_smoothing)
            else:
                logits = model.embedding.logits(hidden)
                loss = F.cross_entropy(
                    logits, target, ignore_index=PAD, reduction="sum", label_smoothing=self.hyper.label_smoothing
                )
        return loss / batch.n_update

    def __call__(self, batch: Batch) -> None:
        self.loss(batch).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def wait(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def peak_gib() -> float:
    """Peak memory of the card since the last call, in GiB."""
    if not torch.cuda.is_available():
        return 0.0
    peak = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return peak


def timed(work: Callable[[], object], device: torch.device, times: int) -> float:
    """Seconds of one call: the mean of `times` calls in a row."""
    wait(device)
    start = time.perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return (time.perf_counter() - start) / times


# ---- the questions


def correct(plan: Plan, device: torch.device) -> dict[str, dict[str, float]]:
    """Relative errors of loss and gradient against float64, without dropout."""
    hyper, vocab_size = next(iter(plan.models.values()))
    exact_hyper = replace(hyper, dropout=0.0)
    sides = text(plan.pairs // 10, vocab_size)
    batch = {packed: next(batches(*sides, min(plan.tokens, 2_000), packed=packed)) for packed in (False, True)}

    def found(ways: Ways, dtype: torch.dtype) -> tuple[float, Tensor]:
        step = Step(exact_hyper, vocab_size, ways, device)
        step.model.to(dtype)
        loss = step.loss(moved(batch[ways.packed], device))
        loss.backward()
        gradients = [parameter.grad for parameter in step.model.parameters() if parameter.grad is not None]
        return loss.item(), torch.cat([gradient.double().flatten() for gradient in gradients])

    plain = Ways(bf16=False, packed=False, compiled=False, fused_loss=True, fused_adam=False)
    loss, gradient = found(plain, torch.float64)
    errors = {}
    for name, ways in ({"plain fp32": plain, "fast fp32": Ways(bf16=False)} | ABLATIONS).items():
        other, slope = found(ways, torch.float32)
        errors[name] = {
            "loss": abs(other - loss) / loss,
            "gradient": float((slope - gradient).norm() / gradient.norm()),
        }
    return errors


def limits(device: torch.device) -> dict[str, float]:
    """What the card reaches: TFLOP/s of products in bfloat16, TB/s of copying."""
    size = 8_192 if device.type == "cuda" else 256
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    for _ in range(10):
        torch.mm(a, b, out=out)
    seconds = min(timed(lambda: torch.mm(a, b, out=out), device, 20) for _ in range(5))
    large = torch.empty(2**30 if device.type == "cuda" else 2**20, dtype=torch.uint8, device=device)
    other = torch.empty_like(large)
    copying = min(timed(lambda: other.copy_(large), device, 20) for _ in range(5))
    return {"tflops": 2 * size**3 / seconds / 1e12, "copy_tb_per_second": 2 * large.numel() / copying / 1e12}


def steps(plan: Plan, device: torch.device, peak: float) -> list[dict[str, Any]]:
    """Tokens per second and MFU of whole steps, with all techniques; for the first model also without each."""
    lines = []
    for number, (size, (hyper, vocab_size)) in enumerate(plan.models.items()):
        sides = text(plan.pairs, vocab_size)
        for name, ways in (ABLATIONS if number == 0 else {"all": Ways()}).items():
            peak_gib()  # of this line alone
            try:
                seconds, waited, done = _measured(plan, hyper, vocab_size, sides, ways, device)
            except torch.OutOfMemoryError:
                lines.append({"size": size, "ways": name, "out_of_memory": True})
                continue
            flops = sum(
                training_flops(
                    hyper, vocab_size,
                    TextSizes(sentences=len(one.sentence), source_tokens=one.n_source, target_tokens=one.n_target),
                )
                for one in done
            )  # fmt: skip
            tokens = sum(one.n_source + one.n_target for one in done)
            lines.append(
                {
                    "size": size,
                    "ways": name,
                    "milliseconds": 1e3 * seconds / len(done),
                    "pieces_per_second": tokens / seconds,
                    "pair_tokens_per_second": sum(one.n_target for one in done) / seconds,
                    "mfu": flops / seconds / 1e12 / peak,
                    "waited_for_loader": waited / seconds,
                    "peak_gib": peak_gib(),
                }
            )
            print(lines[-1], flush=True)
    return lines


def _measured(
    plan: Plan, hyper: Hyper, vocab_size: int, sides: tuple[Encoded, Encoded], ways: Ways, device: torch.device
) -> tuple[float, float, list[Batch]]:
    """Seconds of some steps, seconds of these in which the host made batches, and the batches."""
    step = Step(hyper, vocab_size, ways, device)
    stream, done, waited = batches(*sides, plan.tokens, packed=ways.packed), [], 0.0
    for batch in islice(stream, plan.warm):
        step(moved(batch, device))
    wait(device)
    start = time.perf_counter()
    for _ in range(plan.steps):
        before = time.perf_counter()
        batch = next(stream)
        waited += time.perf_counter() - before
        step(moved(batch, device))
        done.append(batch)
    wait(device)
    return time.perf_counter() - start, waited, done


KINDS = {  # words in the names of kernels; the first kind that fits counts
    "attention": ("flash", "fmha", "attention"),  # before products, as these names contain "cutlass" too
    "matrix products": ("gemm", "nvjet", "cutlass", "xmma"),
    "optimizer": ("adam", "multi_tensor"),
    "embedding": ("embedding", "index", "scatter", "gather"),
    "fused by the compiler": ("triton",),
}


def parts(plan: Plan, device: torch.device) -> dict[str, dict[str, float]]:
    """Milliseconds of a step by kind of kernel, and the rest: gaps."""
    from torch.profiler import ProfilerActivity, profile

    found = {}
    for size, (hyper, vocab_size) in plan.models.items():
        stream = batches(*text(plan.pairs, vocab_size), plan.tokens, packed=True)
        step = Step(hyper, vocab_size, Ways(), device)
        ready = [moved(batch, device) for batch in islice(stream, plan.warm + 5)]
        for batch in ready[: plan.warm]:
            step(batch)
        wait(device)
        measured = ready[plan.warm :]
        rest = iter(measured)
        wall = 1e3 * timed(lambda step=step, rest=rest: step(next(rest)), device, len(measured))  # without the profiler
        activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
        with profile(activities=[activity]) as profiled:
            for batch in measured:
                step(batch)
            wait(device)
        shares = dict.fromkeys([*KINDS, "other kernels"], 0.0)
        for event in profiled.key_averages():
            spent = event.self_device_time_total if device.type == "cuda" else event.self_cpu_time_total
            name = event.key.lower()
            fitting = (kind for kind, words in KINDS.items() if any(word in name for word in words))
            shares[next(fitting, "other kernels")] += spent / 1e3 / 5
        found[size] = shares | {"gaps": wall - sum(shares.values()), "all": wall}
    return found


QUESTIONS: dict[str, Callable[[Plan, torch.device, float], Any]] = {  # the last argument is the rate of the card
    "correct": lambda plan, device, peak: correct(plan, device),
    "steps": steps,
    "parts": lambda plan, device, peak: parts(plan, device),
}


def read(parser: argparse.ArgumentParser, questions: Iterable[str]) -> tuple[argparse.Namespace, torch.device]:
    """What is asked, and the card. Ends the program where there is none, but for a rehearsal."""
    parser.add_argument("--rehearse", action="store_true", help="tiny, also without a GPU")
    parser.add_argument("--ask", nargs="+", choices=list(questions), default=list(questions), help="only these")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type != "cuda" and not options.rehearse:
        sys.exit("expected a GPU, found none. --rehearse shows on any machine that the script runs.")
    return options, device


def main() -> None:
    """Ask all questions in turn; a failure is named, and the rest goes on."""
    options, device = read(new_parser(__doc__), QUESTIONS)
    plan = REHEARSAL if options.rehearse else WHOLE
    cpu_tuning.tune(0)
    peak = limits(device)
    record: dict[str, Any] = {"limits": peak}
    print(peak, flush=True)
    failed = []
    for name in options.ask:
        started = time.perf_counter()
        try:
            record[name] = QUESTIONS[name](plan, device, peak["tflops"])
        except Exception as error:  # device time is dear: the rest is measured, and the command fails at the end
            record[name] = {"failed": f"{type(error).__name__}: {error}"}
            failed.append(name)
        print(f"{name} ({time.perf_counter() - started:.0f} s): {record[name]}", flush=True)
        save(options.json, record, provenance(device.type))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
