"""docs/performance.md and its picture, made from the records of the benchmarks.

Every number of the page is in a record under `benchmarks/records/`, which a benchmark wrote with `--json`; to
measure again, run the command shown beside a table and this one after it.

Run:  python benchmarks/performance.py            (--check: only say whether the page is what the records make)
"""

import argparse
import json
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from speed_picture import NAMES, Record, picture, size_of

from repro.model.config import BASE, Hyper
from repro.model.cost import TextSizes, n_parameters, training_flops
from repro.runs.hardware import BIG, CARDS, pair_flops
from repro.storage import atomic

HERE = Path(__file__).parent
RECORDS = HERE / "records"
PAGE = HERE.parent / "docs" / "performance.md"
PICTURE = PAGE.with_suffix(".png")
TARGETS = {  # speed of ours divided by that of the best peer as shipped
    ("small", "fp32"): 2.5,
    ("small", "bf16"): 2.5,
    ("base", "fp32"): 2.3,
    ("base", "bf16"): 1.7,
}
SENTENCE = 28  # tokens in a sentence of the workload


def load() -> dict[str, Record]:
    """All records by file name without ending."""
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(RECORDS.glob("*.json"))}


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def prose(text: str) -> list[str]:
    """A paragraph, broken into lines."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def machine(record: Record) -> str:
    """The machine and the versions with which it was measured."""
    stamp = record["stamp"]
    threads = record.get("threads", record.get("threads_a_process", stamp["n_threads"]))
    if isinstance(threads, list):  # from a program that measures several
        threads = ", ".join(map(str, threads))
    commit = stamp["commit"][:7] + (" with uncommitted changes" if stamp["dirty"] else "")
    where = stamp["device"] or stamp["cpu"]  # a program without torch names no device
    return f"{where}, {threads} thread(s), torch {stamp['versions']['torch']}, commit {commit}"


def training(records: dict[str, Record]) -> list[str]:
    """Ours against the peers."""
    found = {name: record for name, record in records.items() if name.startswith("train-")}
    if not found:
        return []
    lines = [
        "## Training",
        "",
        *prose(
            "Real source + target tokens per second of a whole step: forward, smoothed loss, backward, Adam, the "
            "paper's dropout. *ours* is all of a run: loader, Lightning, journal lines. Peers are as "
            "shipped, in a plain loop, on the same batches; all processes take turns, a pass each. "
            "GFLOP/s are the model's own operations on real tokens (`repro/model/cost.py`). "
            "`python benchmarks/train.py`"
        ),
        "",
        "; ".join(dict.fromkeys(f"*{one['size']}* is {size_of(one)}" for one in found.values())) + ".",
    ]
    for record in found.values():
        size, precision, best = record["size"], record["precision"], record["best_peer"]
        ratio = record["sides"]["ours"]["of_best_peer"]
        clock = "processor" if record["clock"] == "cpu_seconds" else "wall"
        lines += [
            "",
            f"### {size}, {precision}, {record['threads']} thread(s)",
            "",
            f"{ratio:.2f} times the best peer, {NAMES.get(best, best)} (our own target: {TARGETS[size, precision]}). "
            f"Medians of {record['passes']} passes of {clock} time. {machine(record)}.",
            "",
            *grid(
                ("", "tokens/s", "lowest to highest", "GFLOP/s", "of the best peer", "peak MiB"),
                [
                    (
                        NAMES.get(name, name),
                        f"{side['tokens_per_second']:,.0f}",
                        f"{side['lowest']:,.0f} to {side['highest']:,.0f}",
                        f"{flops_of_a_token(record) * side['tokens_per_second'] / 1e9:,.0f}",
                        f"{side['of_best_peer']:.2f}",
                        f"{side['peak_bytes'] / 2**20:,.0f}",
                    )
                    for name, side in sorted(record["sides"].items(), key=lambda item: -item[1]["tokens_per_second"])
                ],
            ),
            "",
            f"Lightning, loader and journal cost {overhead(record):.1%} of a step. "
            f"Set automatically: {'; '.join(record['sides']['ours']['settings'])}.",
        ]
    return lines


def flops_of_a_token(record: Record) -> float:
    """Operations of training per source or target token, sentences being of the workload's mean length."""
    half = record["pieces_of_a_pass"] / 2
    text = TextSizes(sentences=half / SENTENCE, source_tokens=half, target_tokens=half)
    return training_flops(Hyper(**record["hyper"]), record["vocab_size"], text) / (2 * half)


def overhead(record: Record) -> float:
    """What Lightning, loader and journal add to a step of the bare loop."""
    sides = record["sides"]
    return 1 - sides["ours"]["tokens_per_second"] / sides["ours, bare loop"]["tokens_per_second"]


def decoding(records: dict[str, Record]) -> list[str]:
    """Ours against CTranslate2."""
    found = {name: record for name, record in records.items() if name.startswith("decode-")}
    if not found:
        return []
    head = "", "sentences/CPU-s", "sentences/s", "of CTranslate2", "lowest to highest", "peak MiB", "same output"
    lines = [
        "## Translating",
        "",
        *prose(
            "Beam 4, alpha 0.6, the same weights and sentences; a random model whose sentences end after about 25 "
            "tokens. Ratios are to CTranslate2 in float32, turn by turn: of processor time with one thread, of the "
            "clock with more. `python benchmarks/decode.py`"
        ),
    ]
    for record in found.values():
        settings = record["settings"]
        for threads in dict.fromkeys(line["threads"] for line in record["lines"]):
            lines += [
                "",
                f"### {settings['size']}, {settings['sentences']} sentences, {threads} thread(s)",
                "",
                f"{machine(record)}, CTranslate2 {record['stamp']['versions']['ctranslate2']}.",
                "",
                *grid(
                    head,
                    [
                        (
                            line["engine"],
                            f"{line['sentences per CPU second']:.2f}",
                            f"{line['sentences per second']:.2f}",
                            f"{line['ratio']:.2f}",
                            f"{line['lowest ratio']:.2f} to {line['highest ratio']:.2f}",
                            f"{line['peak MiB']:,.0f}",
                            f"{line['same']:.0%}",
                        )
                        for line in record["lines"]
                        if line["threads"] == threads
                    ],
                ),
            ]
    return lines


def scaling(records: dict[str, Record]) -> list[str]:
    """Several processes, measured and computed."""
    lines = ["## Several processes", ""]
    if record := records.get("scaling"):
        lines += [
            *prose(
                "Two processes of one thread each against one of one thread, averaging gradients over gloo; "
                "*strong*: the same updates, *weak*: twice as large. `python benchmarks/scaling.py`. "
                f"{machine(record)}."
            ),
            "",
            *grid(
                ("model", "", "slots of an update", "tokens/s", "times one process", "lowest to highest"),
                [
                    (
                        line["size"],
                        line["way"],
                        f"{line['slots_of_an_update']:,}",
                        f"{line['pieces_per_second']:,.0f}",
                        f"{line['times_one_process']:.2f}",
                        f"{line['lowest']:.2f} to {line['highest']:.2f}",
                    )
                    for line in record["lines"]
                ],
            ),
            "",
        ]
    return [*lines, *on_paper()]


def on_paper() -> list[str]:
    """Bytes over the network per step, computed."""
    from gpu import BIG, WHOLE

    vocab_size = WHOLE.models["base"][1]
    links = {  # processes, bytes per second that each sustains
        "8 GPUs in a node, NVLink": (8, 300e9),
        "4 nodes of 8, InfiniBand 8 x 400 Gb/s": (32, 300e9),
        "4 nodes of 8, Ethernet 100 Gb/s": (32, 10e9),
    }
    rows = []
    for name, hyper in (("base", BASE), ("big", BIG)):
        size = 4 * n_parameters(hyper, vocab_size)
        for link, (n, rate) in links.items():
            sent = 2 * (n - 1) / n * size
            rows.append((name, f"{size / 1e6:,.0f} MB", link, f"{sent / 1e6:,.0f} MB", f"{1e3 * sent / rate:,.1f} ms"))
    return [
        "On paper: in each update a process sends 2 (W - 1) / W of the float32 gradient, however large the update is.",
        "The rates are assumptions: what a ring sustains for each process, 300 GB/s over NVLink or a rail of its own,",
        "10 GB/s over one shared link.",
        "",
        *grid(("model", "gradient", "link", "sent by each in an update", "time"), rows),
        "",
        "- DDP overlaps that with the backward pass, so it is paid only where it is longer than that.",
        "- Gradient accumulation (`--devices` and the scale's `device_tokens` decide it) sends once an update: it pays",
        "  where the time above is longer than a micro-batch's backward pass, as over one Ethernet link.",
        f"- FSDP shards weights, gradients, moments: {16 * n_parameters(BIG, vocab_size) / 2**30:.1f} GiB of the",
        "  big model, which fits into any of today's cards, so FSDP would only send more (the weights twice, forward",
        "  and backward). It pays for models some twenty times as large.",
    ]


def growth(records: dict[str, Record]) -> list[str]:
    """How the time of a step grows."""
    record = records.get("growth")
    if record is None:
        return []
    start = ", ".join(f"{name} {value:,}" for name, value in record["from"].items())
    return [
        "## How the cost grows",
        "",
        f"One step, one knob turned at a time from {start}. `python benchmarks/growth.py`. {machine(record)}.",
        "",
        *grid(
            ("knob", "value", "ms a step", "GFLOP by arithmetic", "GFLOP/s"),
            [
                (
                    line["knob"],
                    f"{line['value']:,}",
                    f"{line['milliseconds']:,.1f}",
                    f"{line['gflops']:,.1f}",
                    f"{line['gflops_per_second']:,.0f}",
                )
                for line in record["lines"]
            ],
        ),
    ]


def gpu(records: dict[str, Record]) -> list[str]:
    """What one call measured on a GPU."""
    record = records.get("gpu")
    if record is None:
        return []
    lines = [
        "## On a GPU",
        "",
        f"{machine(record)}. Measured there: {record['limits']['tflops']:.0f} TFLOP/s of bfloat16 products, "
        f"{record['limits']['copy_tb_per_second']:.1f} TB/s of copying. `python benchmarks/gpu.py`",
    ]
    tables: dict[str, tuple[str, Callable[[Any], list[str]]]] = {
        "correct": ("Loss and gradient of one update against float64, relative", _gpu_correct),
        "steps": (
            "Steps, loader included; MFU is of the rate measured, on real tokens only",
            partial(_gpu_steps, device=machine(record)),
        ),
        "parts": ("Where the time of a step goes, ms", _gpu_parts),
        "together": ("Small models at once, a process each", _gpu_together),
    }
    for name, (title, told) in tables.items():
        found = record.get(name, {"failed": "not measured"})
        failed = isinstance(found, dict) and "failed" in found
        lines += ["", f"### {title}", "", *([f"{found['failed']}."] if failed else told(found))]
    return lines


def _gpu_correct(found: Record) -> list[str]:
    rows = ((ways, f"{of['loss']:.1e}", f"{of['gradient']:.1e}") for ways, of in found.items())
    return grid(("", "loss", "gradient"), rows)


def _gpu_steps(found: list[Record], device: str) -> list[str]:
    rows = (
        (
            line["size"],
            line["ways"],
            f"{line['milliseconds']:.1f}",
            f"{line['pair_tokens_per_second']:,.0f}",
            f"{line['mfu']:.1%}",
            f"{line['waited_for_loader']:.1%}",
            f"{line['peak_gib']:.1f}",
        )
        if "milliseconds" in line
        else (line["size"], line["ways"], "out of memory", *[""] * 4)
        for line in found
    )
    head = ("model", "", "ms a step", "pair tokens/s", "MFU", "host made batches", "peak GiB")
    return [*grid(head, rows), *_gpu_beside_published(found, device)]


def _gpu_beside_published(found: list[Record], device: str) -> list[str]:
    """A forecast for this card from the rates of others, beside what was measured."""
    card = next((card for name, card in CARDS.items() if name.upper() in device), None)
    rates = {line["size"]: line.get("pair_tokens_per_second") for line in found if line["ways"] == "all"}
    if card is None or not all(rates.get(size) for size in ("base", "big")):
        return []
    there = {"base": card.base / pair_flops(BASE), "big": card.big / pair_flops(BIG)}
    parts = (f"{size} {rates[size]:,.0f} here, {pairs:,.0f} there" for size, pairs in there.items())
    return [
        "",
        *prose(
            f"Pair tokens a second beside what `--hardware {card.name}` takes from published rates, with 37,000 "
            f"word-pieces: {'; '.join(parts)}."
        ),
    ]


def _gpu_parts(found: dict[str, dict[str, float]]) -> list[str]:
    kinds = dict.fromkeys(kind for of in found.values() for kind in of)
    return grid(("", *found), ((kind, *(f"{of[kind]:.2f}" for of in found.values())) for kind in kinds))


def _gpu_together(found: list[Record]) -> list[str]:
    rows = (
        (f"{line['processes']}", f"{line['each']:,.0f}", f"{line['all']:,.0f}", f"{line['share_of_lone_speed']:.0%}")
        for line in found
    )
    return grid(("processes", "tokens/s each", "tokens/s together", "of its lone speed"), rows)


def reliability(records: dict[str, Record]) -> list[str]:
    """The cost of losing nothing (docs/reliability.md)."""
    lines = ["## What reliability costs"]
    if record := records.get("checkpoint"):
        turns = record["turns"]
        kinds = {
            "saved: written, pushed, read back, compared": "save",
            "of that, processor time": "cpu of save",
            "read and checked at a start": "load",
            "for comparison: hashing the bytes alone": "hash",
            "writing them alone": "write",
            "pushing them to the disk alone": "push",
        }
        rows = []
        for name, key in kinds.items():
            each = [turn[key] for turn in turns]
            rows.append((name, f"{statistics.median(each):.2f}", f"{min(each):.2f} to {max(each):.2f}"))
        lines += [
            "",
            *prose(
                f"A checkpoint of the base model with both moments of Adam, {turns[0]['bytes'] / 1e6:,.0f} MB; beyond "
                f"the state itself {max(turn['memory'] for turn in turns) / 1e6:.1f} MB of memory. "
                f"`python benchmarks/checkpoint.py`. {machine(record)}."
            ),
            "",
            *grid(("", "seconds", "lowest to highest"), rows),
        ]
    if record := records.get("tracker"):
        lines += [
            "",
            *prose(
                "A step of a small network with one line of the journal, trackers in turns. A ratio is the median over "
                "the turns of that to the turn without a tracker, so it need not be the ratio of the medians; "
                "`none again` is a second turn without one: what two turns differ by when nothing differs. Turns are "
                f"of {record['steps']:,} steps each. `python benchmarks/tracker.py`. "
                f"{machine(record)}."
            ),
            "",
            *grid(
                ("tracker", "median ms", "ratio", "p99 ms", "ratio of p99", "its lowest to highest"),
                [
                    (
                        name,
                        f"{of['median_ms']:.2f}",
                        f"{of['median_ratio']:.2f}",
                        f"{of['p99_ms']:.2f}",
                        f"{of['p99_ratio']:.2f}",
                        "{:.2f} to {:.2f}".format(*of["p99_ratio_range"]),
                    )
                    for name, of in record["trackers"].items()
                ],
            ),
        ]
    return lines if len(lines) > 1 else []


def page(records: dict[str, Record]) -> str:
    """The whole page."""
    parts = [
        [
            "# Performance",
            "",
            "Made by `python benchmarks/performance.py` from `benchmarks/records/`; nothing here was typed in.",
            "",
            "![Training and translating against peers](performance.png)",
        ],
        training(records),
        decoding(records),
        scaling(records),
        growth(records),
        reliability(records),
        gpu(records),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def main() -> None:
    """Write page and picture, or check the page."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    records = load()
    made = page(records)
    if options.check:
        if not PAGE.exists() or PAGE.read_bytes() != made.encode():
            sys.exit(f"{PAGE} is not what the records make. Run: python benchmarks/performance.py")
        return
    atomic.write_text(PAGE, made)
    atomic.write_bytes(PICTURE, picture(records))
    print(PAGE)


if __name__ == "__main__":
    main()
