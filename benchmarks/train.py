"""Tokens per second of a whole training step: this suite against the toolkits people use.

Sizes and workload are those that toolkits were measured with: log-normal lengths (mean 28, at most 99 and the end),
tokens by Zipf's law, batches of similar lengths with at most 2,048 slots a side, three-way tied embeddings, dropout and
label smoothing 0.1. A step is forward, smoothed loss, backward and Adam. `ours` trains as a run does: with the loader,
Lightning, journal lines and the settings of `repro/training/cpu_tuning.py`; `ours, bare loop` is the same module
without loader, Lightning and journal, so the difference is their cost. Peers (`benchmarks/peers.py`) run a plain
loop, each in a process and an environment of its own, on the same batches. All processes are kept alive and take
turns, a pass each, so other work on the machine slows all alike. The first pass warms up. It prints medians and
extremes over the passes of real source + target tokens per second: of processor time with one thread,
of time on the clock with more.

Run:  python benchmarks/train.py --install peers              (once: environments of the peers, in this folder)
      python benchmarks/train.py --size small --peers peers   (about two minutes)
      python benchmarks/train.py --only ours --against b64bb2a --passes 9      (today's code and that commit's in turns)
      python benchmarks/train.py --size base --bf16 --peers peers --passes 3 --json base-bf16.json
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command import new_parser, save, show
from peers import PEERS, Size, Turns, in_turns, read_batches
from torch import Tensor

from repro.data.batch import make_batch
from repro.data.batching import Ints, Plan
from repro.data.datamodule import TranslationData
from repro.data.shards import Encoded
from repro.model.config import BASE, Hyper
from repro.model.loss import smoothed_cross_entropy
from repro.model.special_tokens import EOS, PAD
from repro.runs.run import Silence
from repro.storage import atomic
from repro.training import cpu_tuning
from repro.training.loop import Every, fit
from repro.training.module import TranslationModule
from repro.training.run_spec import Precision

HERE = Path(__file__).parent
OURS, BARE = "ours", "ours, bare loop"
MEASURED = ("seconds", "cpu_seconds", "system_seconds", "page_faults")  # of a turn
SLOTS = 2_048
PLAN: dict[str, Any] = {"budget": SLOTS, "data_hash": "benchmark", "seed": 1}
SIZES: dict[str, tuple[Hyper, int, int]] = {  # hyper-parameters, vocabulary, steps in a pass
    "small": (replace(BASE, n_layers=2, d_model=128, d_ff=512, n_heads=4, d_k=32, d_v=32), 8_000, 4),
    "base": (BASE, 37_000, 2),
    "laptop": (replace(BASE, n_layers=3, d_model=64, d_ff=256, d_k=8, d_v=8), 3_000, 8),
}


@dataclass(frozen=True, kw_only=True)
class Work:
    """What all contestants train on."""

    size: str
    precision: Precision
    threads: int
    passes: int

    @property
    def hyper(self) -> Hyper:
        return SIZES[self.size][0]

    @property
    def vocab_size(self) -> int:
        return SIZES[self.size][1]

    @property
    def peers_size(self) -> Size:
        hyper = self.hyper
        return Size(
            n_layers=hyper.n_layers, d_model=hyper.d_model, d_ff=hyper.d_ff, n_heads=hyper.n_heads,
            vocab_size=self.vocab_size, dropout=hyper.dropout, label_smoothing=hyper.label_smoothing,
        )  # fmt: skip


def sentences(lengths: Ints, vocab_size: int, random: np.random.Generator) -> Encoded:
    """Sentences of these lengths, their tokens by Zipf's law."""
    offsets = np.append(0, np.cumsum(lengths))
    zipf = 1 / np.arange(1, vocab_size - 1)
    ids = random.choice(np.arange(2, vocab_size), offsets[-1], p=zipf / zipf.sum()).astype(np.uint16)
    ids[offsets[1:] - 1] = EOS
    return Encoded(ids, offsets)


def text(work: Work) -> tuple[Encoded, Encoded]:
    """Both sides, always the same: as many updates of a corpus as a pass has, evenly from short to long sentences."""
    random = np.random.default_rng(0)
    source = 27 * random.lognormal(-(0.5**2) / 2, 0.5, 40_000)
    target = source * random.normal(1, 0.1, len(source))
    both = [np.clip(np.rint(side), 1, 99).astype(np.int64) + 1 for side in (source, target)]
    plan = Plan(*both, **PLAN).planned(0)
    by_length = sorted(range(len(plan)), key=lambda i: int(both[0][plan.batch(i)].max()))
    n = SIZES[work.size][2]
    chosen = np.concatenate([plan.batch(by_length[(2 * i + 1) * len(plan) // (2 * n)]) for i in range(n)])
    made = [sentences(side[chosen], work.vocab_size, random) for side in both]
    return made[0], made[1]


def per_pass(work: Work) -> int:
    """Updates in one pass over the text."""
    source, target = text(work)
    return Plan(source.lengths, target.lengths, budget=SLOTS).updates_per_epoch


def write_batches(work: Work, path: Path) -> int:
    """Write the plan's updates of all passes, for contestants without loader; returns the real tokens of a pass."""
    source, target = text(work)
    plan = Plan(source.lengths, target.lengths, **PLAN).updates()
    arrays: list[Any] = []
    for update in islice(plan, per_pass(work) * (work.passes + 1)):
        batch = make_batch(source, target, update.sentences, n_update=update.target_tokens)
        arrays += [batch.source, batch.decoder_in, batch.target]
    atomic.write_bytes(path, lambda file: np.savez(file, *arrays))
    return int(source.lengths.sum() + target.lengths.sum())


# ---- our sides


def whole_way(work: Work) -> None:
    """Take part as `ours`: train as a run does."""
    turns, n, done = Turns(), per_pass(work), 0
    source, target = text(work)
    settings = cpu_tuning.tune(SLOTS * work.hyper.d_model**2)
    module = TranslationModule(work.hyper, work.vocab_size, seed=1)

    def should_stop() -> bool:  # asked after each step: here one turn ends and the next begins
        nonlocal done
        done += 1
        if done % n:
            return False
        turns.done(settings=settings, threads=torch.get_num_threads(), torch=torch.__version__)
        return not turns.wait()

    turns.wait()
    with tempfile.TemporaryDirectory() as folder:
        fit(
            module, TranslationData((source, target), (source, target), **PLAN), folder=Path(folder), run="benchmark",
            log=Silence(), every=Every(log=20, validate=10**9, checkpoint=10**9),
            watch=lambda kind, step, numbers: None, should_stop=should_stop, precision=work.precision,
        )  # fmt: skip


def bare_loop(work: Work, path: Path) -> None:
    """Take part as the same model, loss and optimizer without Lightning, loader and journal."""
    settings = cpu_tuning.tune(SLOTS * work.hyper.d_model**2)
    module = TranslationModule(work.hyper, work.vocab_size, seed=1)
    model, optimizer = module.model, module.configure_optimizers()
    for group in optimizer.param_groups:
        group["lr"] = 1e-4

    def loss(source: Tensor, decoder_in: Tensor, target: Tensor) -> Tensor:
        hidden = model.decode(decoder_in, model.encode(source), source)
        total, _ = smoothed_cross_entropy(hidden, model.embedding.weight, target, work.hyper.label_smoothing)
        return total / (target != PAD).sum()

    in_turns(
        (model, loss, optimizer), read_batches(path), per_pass(work), work.precision == "bf16",
        settings=settings, threads=torch.get_num_threads(), torch=torch.__version__,
    )  # fmt: skip


# ---- the match


class Contestant:
    """A process that trains a pass when told to."""

    def __init__(self, name: str, command: list[str], threads: int, errors: Path, code: Path) -> None:
        self.name, self.errors = name, errors
        self.answers: list[dict[str, Any]] = []
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
        with errors.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
                env={**environment, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(code)},
            )  # fmt: skip

    def take_turn(self) -> None:
        """One pass."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(b"go\n")
            self.process.stdin.flush()
            self.answers.append(json.loads(self.process.stdout.readline()))
        except (BrokenPipeError, json.JSONDecodeError):
            said = self.errors.read_bytes().decode("utf-8", "replace")
            sys.exit(f"{self.name} has ended before its time. The last it said:\n{said[-2_000:]}")

    def stop(self) -> None:
        """Let the process end after its last turn."""
        self.process.communicate(b"stop\n")

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()


def checked_out(commit: str, folder: Path) -> Path:
    """The files of a commit in `folder`. Raises CalledProcessError, after what git says, if there is no such commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=HERE.parent, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def compete(
    work: Work, names: list[str], peers: Path, commit: str | None
) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Let all train in turns; returns the tokens of a pass, and the answers of each without the first pass."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "batches.npz"
        tokens, n = write_batches(work, file), per_pass(work)
        code = dict.fromkeys(names, HERE.parent)
        if commit:
            code[f"{OURS} at {commit}"] = checked_out(commit, folder / "code")
        contestants = []
        for name, there in code.items():
            command: list[Any]
            if name in PEERS:
                python = python_of(peers / name) if PEERS[name].install else Path(sys.executable)
                command = [python, HERE / "peers.py", name, "--size", json.dumps(asdict(work.peers_size))]
                command += ["--work", file, "--per-turn", n, *["--bf16"] * (work.precision == "bf16")]
            else:
                side = BARE if name == BARE else OURS
                command = [sys.executable, there / "benchmarks/train.py", "--take-part", side, "--work", file]
                command += ["--size", work.size, *["--bf16"] * (work.precision == "bf16")]
            errors = folder / f"{name}.txt"
            contestant = Contestant(name, [str(word) for word in command], work.threads, errors, there)
            stack.callback(contestant.kill)
            contestants.append(contestant)
        for _ in range(work.passes + 1):
            for contestant in contestants:
                contestant.take_turn()
        for contestant in contestants:
            contestant.stop()
    return tokens, {contestant.name: contestant.answers[1:] for contestant in contestants}


def summary(work: Work, tokens: int, answers: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The numbers of a match, compared with the fastest peer."""
    clock = "cpu_seconds" if work.threads == 1 else "seconds"  # one thread's time does not depend on other work
    speeds = {name: [tokens / one[clock] for one in turns] for name, turns in answers.items()}
    medians = {name: statistics.median(speed) for name, speed in speeds.items()}
    best = max((name for name in medians if name in PEERS), key=lambda name: medians[name], default=None)
    sides = {
        name: {
            "tokens_per_second": round(medians[name], 1),
            "lowest": round(min(speeds[name]), 1),
            "highest": round(max(speeds[name]), 1),
            "of_best_peer": round(medians[name] / medians[best], 3) if best else None,
            "passes": speeds[name],
            **{name: statistics.median(one[name] for one in turns) for name in MEASURED},
            "peak_bytes": max(one["peak_bytes"] for one in turns),
            "threads": turns[-1]["threads"],
            "torch": turns[-1]["torch"],
            "settings": turns[-1].get("settings", []),
            "installed": PEERS[name].install if name in PEERS else [],
        }
        for name, turns in answers.items()
    }
    return {
        **asdict(work), "hyper": asdict(work.hyper), "vocab_size": work.vocab_size, "pieces_of_a_pass": tokens,
        "steps_of_a_pass": per_pass(work), "clock": clock, "best_peer": best, "sides": sides,
    }  # fmt: skip


def lines(made: dict[str, Any]) -> Iterator[str]:
    """What there is to say below the table of its sides."""
    kind = "processor" if made["clock"] == "cpu_seconds" else "wall"
    yield (
        f"{made['size']}, {made['precision']}, {made['threads']} thread(s), {made['steps_of_a_pass']} steps of "
        f"{made['pieces_of_a_pass']:,} real tokens a pass, {made['passes']} passes; tokens per second of {kind} time"
    )
    for name in made["sides"].keys() - {*PEERS, OURS, BARE}:
        yield f"{OURS}: {_ratio(made, OURS, name)} of {name}, the median over the turns [lowest, highest]"
    if {OURS, BARE} <= made["sides"].keys():
        whole, bare = (made["sides"][name]["tokens_per_second"] for name in (OURS, BARE))
        yield f"Lightning, loader and journal: {1 - whole / bare:.1%} of a step"
        yield f"settings: {', '.join(made['sides'][OURS]['settings']) or 'none'}"


def _ratio(made: dict[str, Any], one: str, other: str) -> str:
    turns = [made["sides"][name]["passes"] for name in (one, other)]
    ratios = [ours / theirs for ours, theirs in zip(*turns, strict=True)]
    return f"{statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]"


# ---- environments


def install(folder: Path) -> None:
    """Make an environment for each peer, with the torch of this one, so that all have the same."""
    for name, peer in PEERS.items():
        if not peer.install:
            continue
        venv.create(folder / name, with_pip=True, clear=True)
        python = python_of(folder / name)
        pip: list[Any] = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
        if peer.before:
            subprocess.run([*pip, *peer.before], check=True)
        subprocess.run([*pip, *["--no-build-isolation"] * bool(peer.before), *peer.install], check=True)
        # only now: if they found torch, some would build extensions whose sources their packages lack
        asked = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, capture_output=True
        )
        link = Path(os.fsdecode(asked.stdout.rstrip(b"\n"))) / "torch_of_the_suite.pth"
        atomic.write_text(link, f"{sysconfig.get_path('purelib')}\n")  # searched after the environment's own packages
        print(f"{name}: {', '.join(peer.install)}", flush=True)


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main() -> None:
    """Compare at one size, or take part in a comparison."""
    parser = new_parser(__doc__)
    parser.add_argument("--install", type=Path, metavar="FOLDER", help="make the peers' environments there, and end")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="where they were made; without: the plain loop")
    parser.add_argument("--only", nargs="+", choices=[OURS, BARE, *PEERS], help="these contestants")
    parser.add_argument("--against", metavar="COMMIT", help="let the code of that commit take part as well")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--bf16", action="store_true", help="matrix products in bfloat16, by autocast")
    parser.add_argument("--take-part", choices=[OURS, BARE], help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.install:
        install(options.install)
        return
    precision: Precision = "bf16" if options.bf16 else "fp32"
    work = Work(size=options.size, precision=precision, threads=options.threads, passes=options.passes)
    if options.take_part == OURS:
        whole_way(work)
    elif options.take_part == BARE:
        bare_loop(work, options.work)
    else:
        there = [name for name, peer in PEERS.items() if not peer.install or options.peers]
        made = summary(work, *compete(work, options.only or [OURS, BARE, *there], options.peers, options.against))
        sides = sorted(made["sides"].items(), key=lambda side: -side[1]["tokens_per_second"])
        columns = "tokens_per_second", "lowest", "highest", "of_best_peer", "cpu_seconds", "page_faults", "peak_bytes"
        show([{"side": name, **side} for name, side in sides], "side", *columns)
        print(*lines(made), sep="\n")
        save(options.json, made)


if __name__ == "__main__":
    main()
