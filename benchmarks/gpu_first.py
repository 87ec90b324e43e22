"""The first ten minutes on a card: does every row run there, is it right, how fast is the real loop; dearest first.

1. `versions`: card, capability, driver, PyTorch, and whether its compiler works.
2. `kernel`: attention of sentences in a row, heads of 8 to 512, empty sentences too, against float64 by padding.
3. `loop`: the base and big, 120 updates each by the whole loop in one process, dev and checkpoints included:
   milliseconds an update, programs compiled, waits for the device in an update.
4. `correct`, `steps`, `parts`: those of `gpu.py`.
5. `rows`: every row of Tables 3 and 4, lab and ladder at base width, one layer: two steps, dev, eight translations; in
   both precisions.
6. `recovery`: a run stopped or killed and resumed, its updates in two parts, against an unbroken one; a weight of NaN.
7. `compiled_rows`: a row of each size and kind of layers, compiled as in a run. To trace one takes 15 s of a processor,
   and there are some twenty: a call of its own has the time for them, --ask compiled_rows.
8. `changes`: each change for speed against what it replaced.
9. `cards`: two processes, a card each, where there are two.

Questions that the time does not suffice for are named. Answers are merged into one record by card, PyTorch and commit:
a second call erases nothing. It needs torch, lightning, tokenizers, safetensors, numpy, rich, psutil and sacrebleu (its
version), but not mlflow, scipy or matplotlib.

Run:  python benchmarks/gpu_first.py                                 (nine minutes at most)
      python benchmarks/gpu_first.py --ask rows --seconds 200
      python benchmarks/gpu_first.py --rehearse                      (tiny, on whatever is there)
"""

import json
import multiprocessing
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import gpu
import numpy as np
import torch
from command import new_parser
from decode import encoded, rambling, sources
from torch import Tensor

from repro.data.batch import DevBatches, make_batch
from repro.data.batching import by_tokens
from repro.data.datamodule import TranslationData
from repro.decoding.backend import opened
from repro.decoding.search import PAPER_SEARCH
from repro.decoding.translate import translate
from repro.model import attention, compiled, masks
from repro.model.attention import ScaledDotProduct
from repro.model.bfloat16 import bfloat16_products
from repro.model.build import reads_ragged
from repro.model.config import BASE, Hyper
from repro.model.masks import RaggedMask
from repro.results.provenance import provenance, system_text
from repro.runs.table import Row
from repro.storage import atomic
from repro.training.group import Group
from repro.training.loop import Every, Fitted, fit
from repro.training.module import TranslationModule

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks/records/gpu_first.json"
SECONDS = 540.0
TABLES = (
    "table3_A", "table3_B", "table3_C", "table3_D", "table3_E", "table3_big", "table4", "ladder", "ladder_long",
    "lab_scores", "lab_positions", "lab_parts", "lab_selection",
)  # fmt: skip
ONE_CARD, CHILD = "alone", "GPU_FIRST_SHARES"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large everything is."""

    base: Hyper
    vocabulary: int
    tokens: int  # of a side of an update, in the real loop
    pairs: int  # of its text
    updates: int
    row_tokens: int  # of an update of each row
    few: int  # updates of a run that is compared
    plan: gpu.Plan
    search_tokens: tuple[int, int]
    sentences: int
    rounds: tuple[int, int]
    heads: tuple[int, ...] = (8, 16, 24, 64, 128, 256, 512)
    kinds: int = 100  # of layers that are compiled, at most


WHOLE = Sizes(
    base=BASE, vocabulary=37_000, tokens=25_000, pairs=150_000, updates=120, row_tokens=2_000, few=20, plan=gpu.WHOLE,
    search_tokens=(4_096, 32_768), sentences=2_000, rounds=(512, 128),
)  # fmt: skip
TINY = Sizes(
    base=replace(BASE, n_layers=3, d_model=64, d_ff=128, d_k=8, d_v=8, warmup=50), vocabulary=300, tokens=200,
    pairs=300, updates=6, row_tokens=120, few=2, plan=gpu.REHEARSAL, search_tokens=(64, 256), sentences=6,
    rounds=(64, 16), heads=(8, 300), kinds=1,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What every question gets as input."""

    sizes: Sizes
    device: torch.device
    ends: float  # time on the monotonic clock

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()


# ---- the card


def versions(asked: Asked) -> dict[str, Any]:
    """The versions of card, driver and libraries, and whether the compiler works."""
    found: dict[str, Any] = {
        "torch": torch.__version__, "cuda": torch.version.cuda, "python": platform.python_version(),
        "cards": torch.cuda.device_count(), "kernels_for": torch.cuda.get_arch_list(),
        "not_compiled": compiled.why_not(asked.device.type),
    }  # fmt: skip
    if asked.device.type == "cuda":
        has = torch.cuda.get_device_properties(0)
        found |= {"card": has.name, "capability": [has.major, has.minor], "gib": has.total_memory / 2**30}
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        found["driver"] = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split("\n")[0]
    return found


def kernel(asked: Asked) -> dict[str, Any]:
    """Largest relative error of heads and of gradients in bfloat16, by width, and the implementation that was used."""
    lengths = torch.tensor([28, 1, 0, 60, 33, 0])
    ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int().to(asked.device)
    found: dict[str, Any] = {}
    for width in asked.sizes.heads:
        for causal in (False, True):
            spans = RaggedMask(ends, ends, 64, 64, causal)
            mixing = ScaledDotProduct(n_heads=2, d_k=width, d_v=width)
            torch.manual_seed(width)
            inputs = [torch.randn(2, int(ends[-1]), width, device=asked.device) for _ in range(3)]

            def attended(dtype: torch.dtype, of: Any = (mixing, inputs, spans)) -> list[Tensor]:
                how, given, who = of
                q, k, v = (x.bfloat16().to(dtype).requires_grad_() for x in given)
                heads = attention.ragged_attention(how, q, k, v, who)
                heads.square().sum().backward()
                return [x.double() for x in (heads.detach(), q.grad, k.grad, v.grad) if x is not None]

            with bfloat16_products(asked.device):
                pairs = zip(attended(torch.bfloat16), attended(torch.float64), strict=True)
            errors = [float((a - b).norm() / b.norm()) for a, b in pairs]
            by_kernel = attention.has_kernel(inputs[0].bfloat16(), width)
            found[f"{width}{' causal' if causal else ''}"] = {
                "heads": errors[0], "gradients": max(errors[1:]), "way": "kernel" if by_kernel else "padded",
            }  # fmt: skip
    return found


# ---- the real loop


class Lines(dict[tuple[str, int], dict[str, float]]):
    """A journal in memory."""

    def append(self, kind: str, step: int, **numbers: float) -> None:
        self[kind, step] = numbers

    def sync(self) -> None:
        pass


def trained(
    sizes: Sizes,
    row: Row,
    folder: Path,
    lines: Lines,
    *,
    updates: int,
    tokens: int,
    pairs: int,
    parts: int = 1,
    precision: Any = "bf16",
    compile_layers: bool = True,
    watch: Callable[[TranslationModule, int], bool] = lambda module, step: False,
    **options: Any,
) -> tuple[TranslationModule, Fitted]:
    """Train this row by the usual loop, each update in `parts`; `watch` is asked after it whether to stop."""
    hyper = replace(row.at(sizes.base), steps=updates, average=1)
    module = TranslationModule(hyper, sizes.vocabulary, 1, row.system)
    if compile_layers and _can_compile():
        compiled.begin_run()
        module.model.compile_layers()
    half, packed = max(1, updates // 2), torch.cuda.is_available() and reads_ragged(row.system)
    train, dev = (gpu.text(n, sizes.vocabulary) for n in (pairs, max(20, pairs // 500)))
    fitted = fit(
        module,
        TranslationData(
            train, dev, budget=tokens, batch_by=by_tokens, data_hash="first", seed=1, accumulate=parts, packed=packed
        ),
        folder=folder,
        run="f1257" * 3 + "0",
        log=lines,
        every=Every(log=max(1, updates // 6), validate=half, checkpoint=half),
        watch=lambda kind, step, numbers: None,
        should_stop=lambda: watch(module, module.trainer.global_step),
        precision=precision,
        **options,
    )
    return module, fitted


class Clock(dict[int, float]):
    """When each update was done."""

    def __call__(self, module: TranslationModule, step: int) -> bool:
        self[step] = time.monotonic()
        return False  # it stops no run

    def milliseconds(self, after: int) -> float | None:
        """The median of an update after that one; before are the compiler and validation."""
        steps = [step for step in sorted(self) if step > after]
        each = [self[b] - self[a] for a, b in pairwise(steps)]
        return 1e3 * statistics.median(each) if each else None


@contextmanager
def waits() -> Iterator[list[str]]:
    """The lines of code within this context that wait for the device, from PyTorch's warnings."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [f"{Path(one.filename).name}:{one.lineno}" for one in caught if "synchroniz" in str(one.message)]


def loop(asked: Asked) -> dict[str, Any]:
    """Two runs in one process: neither may slow the other."""
    sizes, found = asked.sizes, {}
    for row in (base_row(), *rows("table3_big")):
        clock, looked_at = Clock(), range(sizes.updates * 3 // 4, sizes.updates - 1)

        def watch(module: TranslationModule, step: int, clock: Clock = clock, looked: range = looked_at) -> bool:
            if torch.cuda.is_available() and step in (looked.start, looked.stop):
                torch.cuda.set_sync_debug_mode("warn" if step == looked.start else "default")
            return clock(module, step)

        lines = Lines()
        with tempfile.TemporaryDirectory() as folder, waits() as waited:
            trained(
                sizes, row, Path(folder), lines, updates=sizes.updates, tokens=sizes.tokens, pairs=sizes.pairs,
                watch=watch,
            )  # fmt: skip
        rate = lines["train", max(step for kind, step in lines if kind == "train")]["tokens_per_second"]
        found[row.name] = {
            "milliseconds": clock.milliseconds(sizes.updates // 2 + 1),
            "tokens_per_second": rate,
            "programs": n_programs(),
            "given_up": compiled.given_up() if torch.cuda.is_available() else "not asked",
            "waits_an_update": len(waited) / max(1, len(looked_at)),
            "where": sorted(set(waited)),
            "nll": [round(numbers["nll"], 4) for _, numbers in sorted(lines.items())],
            "peak_gib": gpu.peak_gib(),
        }
    return found


def n_programs() -> int:
    """The number of programs that Dynamo compiled since the last run began."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def base_row() -> Row:
    """The base as a row."""
    return Row("base", lambda base: base, rows("table3_A")[0].paper)


# ---- every row


def rows(*tables: str) -> list[Row]:
    """The rows of these experiment files."""
    found = []
    for name in tables:
        found += list(__import__(name).ROWS)
    return found


def every_row(asked: Asked) -> dict[str, Any]:
    """Every row in bfloat16, then in float32, not compiled: the compiler takes longer than all of them together."""
    return _tried(asked, [(way, table, row) for way in ("bf16", "fp32") for table in TABLES for row in rows(table)])


def compiled_rows(asked: Asked) -> dict[str, Any]:
    """The first row of each size and kind of layers that a run compiles."""
    kinds: dict[Any, tuple[str, str, Row]] = {}
    for table in TABLES:
        for row in rows(table):
            of = row.at(BASE)
            if reads_ragged(row.system) and max(of.d_k, of.d_v) <= attention.WIDEST and not of.attention_dropout:
                kind = of.d_model, of.d_ff, of.n_heads, of.d_k, of.d_v, row.system and system_text(row.system)
                kinds.setdefault(kind, ("compiled", table, row))
    return _tried(asked, [*kinds.values()][: asked.sizes.kinds])


def _tried(asked: Asked, left: list[tuple[str, str, Row]]) -> dict[str, Any]:
    """The error of each row that failed, and how many succeeded: an error does not stop the rest."""
    base = replace(asked.sizes.base, n_layers=3, warmup=50)  # N = 2 of 6 and the like keep at least one layer
    failed: dict[str, str] = {}
    done = dict.fromkeys([way for way, *_ in left], 0)
    while left and asked.left > 5:
        way, table, row = left.pop(0)
        name = f"{table}, {row.name}, {way}"
        try:
            with limited(min(120.0 if way == "compiled" else 30.0, asked.left)):
                _one_row(asked, row, base, way)
            done[way] += 1
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
            print(f"{name}: {failed[name]}", flush=True)
    return {"done": done, "failed": failed, "not_reached": len(left)}


def _one_row(asked: Asked, row: Row, base: Hyper, way: str) -> None:
    sizes, device, bf16 = asked.sizes, asked.device, way != "fp32"
    hyper = replace(row.at(base), n_layers=1)
    ways = gpu.Ways(bf16=bf16, compiled=way == "compiled")
    packed = reads_ragged(row.system) and (device.type == "cuda" or ways.compiled)
    compiled.begin_run()
    step = gpu.Step(hyper, sizes.vocabulary, ways, device, row.system)
    with bfloat16_products(device, wanted=bf16):
        for batch in islice(gpu.batches(*gpu.text(200, sizes.vocabulary), sizes.row_tokens, packed=packed), 2):
            step(gpu.moved(batch, device))
    if ways.compiled and (reason := compiled.given_up()):
        raise RuntimeError(reason)
    few_source, few_target = gpu.text(8, sizes.vocabulary)
    dev = DevBatches(few_source, few_target, budget=sizes.row_tokens, rank=0, world=1)
    with opened("torch", step.model, bf16=bf16) as ready:
        nll, _ = ready.score_tokens(dev[i] for i in range(len(dev)))
        written = ready.translate(few_source, replace(PAPER_SEARCH, extra=5))
    if not np.isfinite(nll) or len(written) != 8:
        raise ArithmeticError(f"expected a finite loss and 8 translations, got {nll} and {len(written)}")


# ---- what each change is worth


def changes(asked: Asked) -> dict[str, Any]:
    """Each change before and after, on the same work."""
    return {
        "milliseconds of an update by the multiple that its tokens are rounded to": _rounds(asked),
        "milliseconds to move a batch": _copies(asked),
        "seconds to translate by source tokens at once": _searches(asked),
    }


def _rounds(asked: Asked) -> dict[str, float]:
    sizes, found, own = asked.sizes, {}, masks.ROUND
    try:
        for multiple in sizes.rounds:
            masks.ROUND = multiple
            for tokens in (max(110, sizes.tokens // 8), sizes.tokens):
                compiled.begin_run()
                sides = gpu.text(sizes.pairs // 4, sizes.vocabulary)
                plan = replace(sizes.plan, tokens=tokens, warm=max(2, sizes.few // 2), steps=sizes.few)
                seconds, _, done = gpu._measured(
                    plan, sizes.base, sizes.vocabulary, sides, replace(gpu.Ways(), compiled=_can_compile()),
                    asked.device,
                )  # fmt: skip
                found[f"{multiple}, {tokens} tokens"] = 1e3 * seconds / len(done)
    finally:
        masks.ROUND = own
    return found


def _can_compile() -> bool:
    return torch.cuda.is_available() and compiled.why_not() is None


def _copies(asked: Asked) -> dict[str, float]:
    sides = gpu.text(asked.sizes.pairs // 4, asked.sizes.vocabulary)
    n = min(len(sides[0].lengths), max(4, asked.sizes.tokens // 30))
    made = make_batch(*sides, np.arange(n), n_update=1, packed=True)
    batch = made.pin_memory() if asked.device.type == "cuda" else made

    def one_by_one() -> None:
        for side in (batch.source, batch.decoder_in, batch.target):
            assert isinstance(side, masks.Ragged)
            for part in (side.ids, side.position, side.ends):
                part.to(asked.device)

    return {
        "nine, each waited for": 1e3 * gpu.timed(one_by_one, asked.device, asked.sizes.few),
        "as it is": 1e3 * gpu.timed(lambda: batch.to(asked.device), asked.device, asked.sizes.few),
    }


def _searches(asked: Asked) -> dict[str, Any]:
    sizes, found = asked.sizes, {}
    model = rambling(sizes.base, sizes.vocabulary).to(asked.device)
    some, every = encoded([np.array([5, 6, 2])] * 8), sources(sizes.sentences, sizes.vocabulary)
    with bfloat16_products(asked.device), torch.autocast(asked.device.type, torch.bfloat16):
        translate(model, some)
        for tokens in sizes.search_tokens:
            gpu.wait(asked.device)
            begun = time.perf_counter()
            translate(model, every, batch_tokens=tokens)
            gpu.wait(asked.device)
            found[str(tokens)] = time.perf_counter() - begun
        if asked.device.type == "cuda":
            with waits() as waited:
                torch.cuda.set_sync_debug_mode("warn")
                written = translate(model, some)
                torch.cuda.set_sync_debug_mode("default")
            found["waits a step"] = len(waited) / max(1, *map(len, written))
            found["where"] = sorted(set(waited))
    found["peak_gib"] = gpu.peak_gib()
    return found


# ---- interruptions


def _run_of(
    sizes: Sizes, folder: Path, watch: Callable[[TranslationModule, int], bool] = lambda module, step: False
) -> tuple[TranslationModule, Fitted]:
    small = replace(sizes, base=replace(sizes.base, n_layers=1), vocabulary=min(sizes.vocabulary, 8_000))
    return trained(
        small, base_row(), folder, Lines(), updates=8, tokens=max(240, sizes.tokens // 10), pairs=400, parts=2,
        compile_layers=False, watch=watch,
    )  # fmt: skip


def _killed(rehearse: bool, folder: str) -> None:
    def watch(module: TranslationModule, step: int) -> bool:
        if step == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    _run_of(TINY if rehearse else WHOLE, Path(folder), watch)


def recovery(asked: Asked) -> dict[str, Any]:
    """The largest difference of weights from those of an unbroken run, and whether NaN ends a run."""
    sizes, found = asked.sizes, {}

    def weights(folder: Path) -> Tensor:
        module, _ = _run_of(sizes, folder)
        return torch.cat([one.detach().double().cpu().flatten() for one in module.parameters()])

    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name for name in ("unbroken", "again", "stopped", "killed", "nan")]
        unbroken, again = map(weights, folders[:2])
        found["made again"] = float((again - unbroken).abs().max())
        _run_of(sizes, folders[2], lambda module, step: step == 5)
        process = multiprocessing.get_context("spawn").Process(target=_killed, args=(sizes is TINY, str(folders[3])))
        process.start()
        try:
            process.join(min(120.0, max(1.0, asked.left)))
            found["exit code of the killed"] = process.exitcode
        finally:  # this program would wait for it at its end
            process.kill()
            process.join()
        for folder in folders[2:4]:
            found[folder.name] = float((weights(folder) - unbroken).abs().max())

        def spoil(module: TranslationModule, step: int) -> bool:
            if step == 3:
                with torch.no_grad():
                    next(module.parameters()).fill_(torch.nan)
            return False

        _, fitted = _run_of(sizes, folders[4], spoil)
        found["NaN"] = fitted.diverged.what if fitted.diverged else "not noticed"
    return found


# ---- of gpu.py, and several cards


def of_gpu(name: str) -> Callable[[Asked], Any]:
    """One question of `gpu.py`."""

    def ask(asked: Asked) -> Any:
        limits = gpu.limits(asked.device)
        lines = gpu.QUESTIONS[name](asked.sizes.plan, asked.device, limits["tflops"])
        return {"limits": limits, "lines": lines} if name == "steps" else lines

    return ask


def cards(asked: Asked) -> Any:
    """Milliseconds of an update shared by two processes, each with a card, and of one process alone."""
    if asked.device.type == "cuda" and torch.cuda.device_count() < 2:
        return "one card"
    found = {}
    for n in (1, 2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}", __file__]
        done = subprocess.run(
            [*command, *(["--rehearse"] if asked.sizes is TINY else [])],
            env=os.environ | {CHILD: "1"}, capture_output=True, text=True, timeout=max(1.0, asked.left),
        )  # fmt: skip
        said = [line for line in done.stdout.split("\n") if line.startswith("{")]
        found[str(n)] = json.loads(said[-1]) if said else {"failed": done.stderr[-500:]}
    return found


def share(sizes: Sizes) -> None:
    """The work of one of several processes; the first prints."""
    from repro.runs.launch import membership

    peer, clock, updates = membership(os.environ), Clock(), max(8, sizes.updates // 3)
    assert peer is not None
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {
            "updates": updates, "tokens": sizes.tokens, "pairs": sizes.pairs // 2, "watch": clock,
        }  # fmt: skip
        if peer.processes == 1:
            trained(sizes, base_row(), Path(folder), Lines(), **options)
        else:
            with Group(peer) as group:
                trained(sizes, base_row(), Path(folder), Lines(), devices=peer.processes, group=group, **options)
    if peer.is_first:
        print(json.dumps({"milliseconds": clock.milliseconds(updates // 2 + 1)}), flush=True)


# ---- all of it


QUESTIONS: dict[str, Callable[[Asked], Any]] = {
    "versions": versions,
    "kernel": kernel,
    "loop": loop,
    "correct": of_gpu("correct"),
    "steps": of_gpu("steps"),
    "parts": of_gpu("parts"),
    "rows": every_row,
    "recovery": recovery,
    "compiled_rows": compiled_rows,
    "changes": changes,
    "cards": cards,
}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body if it takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds))
    begun = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the alarm of an outer `limited`
            signal.setitimer(signal.ITIMER_REAL, max(0.01, left - (time.monotonic() - begun)))


def merge(path: Path, key: str, answers: Mapping[str, Any], stamp: Mapping[str, Any]) -> None:
    """Add answers to those in the file, under `key`: the card, PyTorch and commit."""
    there = json.loads(path.read_bytes()) if path.exists() else {}
    own = there.get(key, {"answers": {}})
    own["answers"] |= answers
    atomic.write_json(path, there | {key: own | {"stamp": dict(stamp)}})


def ask_all(asked: Asked, names: list[str], keep: Callable[[str, Any], None]) -> list[str]:
    """Ask these in turn and keep each answer at once; returns the names that failed or were not reached."""
    failed = []
    for name in names:
        begun = time.monotonic()
        if asked.left <= 0:
            answer: Any = {"not_reached": True}
        else:
            try:
                with limited(asked.left):
                    answer = QUESTIONS[name](asked)
            except Exception as error:  # device time is dear: the rest is asked, and the command fails at the end
                answer = {"failed": f"{type(error).__name__}: {str(error)[:500]}"}
            finally:
                if torch.cuda.is_available():
                    torch.cuda.set_sync_debug_mode("default")
        if isinstance(answer, dict) and answer.keys() & {"failed", "not_reached"} and answer.get("failed", True):
            failed.append(name)
        print(f"{name} ({time.monotonic() - begun:.0f} s): {answer}", flush=True)
        if answer != {"not_reached": True}:
            keep(name, answer)
    return failed


def main() -> None:
    """Ask, print and merge; exit 1 if anything failed."""
    parser = new_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="end by then (default: %(default)s)")
    options, device = gpu.read(parser, QUESTIONS)
    sys.path.insert(0, str(ROOT / "experiments"))
    sizes = TINY if options.rehearse else WHOLE
    if CHILD in os.environ:
        share(sizes)
        return
    path = options.json or (None if options.rehearse else RECORD)
    stamp = provenance(device.type)
    key = f"{stamp['device']}, torch {torch.__version__}, {(stamp['commit'] or 'no commit')[:12]}"

    def keep(name: str, answer: Any) -> None:
        if path:
            merge(path, key, {name: answer}, dict(stamp))

    asked = Asked(sizes=sizes, device=device, ends=time.monotonic() + options.seconds)
    if failed := ask_all(asked, options.ask, keep):
        sys.exit(f"failed or not reached: {', '.join(failed)}")


if __name__ == "__main__":
    main()
