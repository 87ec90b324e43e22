"""docs/performance.md and its picture: what one waits for, made from the records of runs and of the benchmarks.

Every number is in a record: of a published run under `results/`, or of a benchmark under `benchmarks/records/`, written
with `--json`. To measure again, run the command shown with a table, then this one.

Run:  python benchmarks/performance.py            (--check: only say whether the page is what the records make)
"""

import argparse
import json
import statistics
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from speed_picture import NAMES, Record, picture, size_of

from repro.storage import atomic

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "benchmarks" / "records"
RUNS = ROOT / "results"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = PAGE.with_suffix(".png")
OPENING = [
    "# Performance",
    "",
    "What you wait for, and how that compares. `python benchmarks/performance.py` makes this page from the records of",
    "published runs and of benchmarks; nothing on it was typed in. Each table names its processor and commit.",
]


def load() -> dict[str, Record]:
    """The records of benchmarks by file name without ending."""
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(RECORDS.glob("*.json"))}


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def prose(*sentences: str) -> list[str]:
    """A paragraph, broken into lines."""
    return textwrap.wrap(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False)


def median(values: Iterable[float], form: str = ",.0f") -> str:
    """The median, then the lowest and the highest value."""
    each = sorted(values)
    return f"{statistics.median(each):{form}} ({each[0]:{form}} to {each[-1]:{form}})"


def machine(*records: Record) -> str:
    """The machines and versions with which these were measured."""
    stamps = [one["stamp"] for one in records]
    # a program without torch names no device
    where = dict.fromkeys(
        f"{stamp['device'] or stamp['cpu']}, torch {stamp['versions']['torch']}, "
        f"{stamp['started'][:10]}, commit {stamp['commit'][:7]}{' with uncommitted changes' * stamp['dirty']}"
        for stamp in stamps
    )
    return f"{'; '.join(where)}."


def waits() -> list[str]:
    """Minutes of a base run on one core, training and search, by scale and processor."""
    minutes: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for scale in ("laptop", "captions-bf16"):
        for path in sorted((RUNS / scale / "base").glob("*.json")):
            run = json.loads(path.read_bytes())
            cost, stamp, precision = run["cost"], run["stamp"], run["settings"]["precision"]
            if run["status"] == "finished" and stamp["n_threads"] == 1:
                where = f"{stamp['device']} ({stamp['instructions']})"
                minutes[scale, precision, where].append((cost["train_seconds"] + cost["decode_seconds"]) / 60)
    rows = [
        (f"`{scale}`, {how}", where, str(len(of)), median(of, ".1f")) for (scale, how, where), of in minutes.items()
    ]
    return [
        "## A row of Table 3",
        "",
        *prose(
            "Minutes of the published base runs, training and searching for dev and test, with one thread each and",
            "other runs beside them: the median, then the lowest and the highest. Rows of the same size take about as",
            "long; two cores make two at once.",
        ),
        "",
        *grid(("scale", "processor", "runs", "minutes"), rows),
    ]


def training(records: dict[str, Record]) -> list[str]:
    """Ours against the peers."""
    found = [record for name, record in records.items() if name.startswith("train-")]
    if not found:
        return []
    rows = []
    for record in found:
        sides, best = record["sides"], record["best_peer"]
        ours, bare, peer = sides["ours"], sides["ours, bare loop"], sides[best]
        rows.append(
            (
                f"{record['size']}, {record['precision']}, {record['threads']}",
                f"{ours['tokens_per_second']:,.0f}",
                f"{NAMES.get(best, best)} {peer['tokens_per_second']:,.0f}",
                f"{ours['of_best_peer']:.2f}",
                f"{ours['peak_bytes'] / 2**20:,.0f}, {peer['peak_bytes'] / 2**20:,.0f}",
                f"{1 - ours['tokens_per_second'] / bare['tokens_per_second']:.1%}",
            )
        )
    sizes = dict.fromkeys(f"*{record['size']}* is {size_of(record)}" for record in found)
    return [
        "## Training, beside other toolkits",
        "",
        "![Training and translating against peers](performance.png)",
        "",
        *prose(
            "Real source and target tokens a second of a whole step: forward, smoothed loss, backward, Adam. *ours* is",
            "all of a run, with loader, Lightning and journal; peers run as shipped, in a plain loop, on the same",
            f"batches; all take turns, and medians are compared. {'; '.join(sizes)}. `python benchmarks/train.py`.",
            machine(*found),
        ),
        "",
        *grid(
            ("model, precision, threads", "ours", "best peer", "ratio", "MiB of both", "loader, loop, journal"), rows
        ),
    ]


def decoding(records: dict[str, Record]) -> list[str]:
    """Ours against CTranslate2."""
    found = [record for name, record in records.items() if name.startswith("decode-")]
    if not found:
        return []
    rows = [
        (
            f"{record['settings']['size']}, {line['threads']}",
            line["engine"],
            f"{line['sentences per second']:.1f}",
            f"{line['ratio']:.2f} ({line['lowest ratio']:.2f} to {line['highest ratio']:.2f})",
            f"{line['peak MiB']:,.0f}",
            f"{line['same']:.0%}",
        )
        for record in found
        for line in record["lines"]
    ]
    return [
        "## Translating, beside CTranslate2",
        "",
        *prose(
            "Beam 4, alpha 0.6, the same random weights and sentences. Ratios are to CTranslate2 in float32, turn by",
            "turn: of processor time with one thread, of the clock with more. `python benchmarks/decode.py`.",
            machine(*found),
        ),
        "",
        *grid(("model, threads", "engine", "sentences/s", "ratio", "MiB", "same output as ours in float32"), rows),
    ]


def gpu(records: dict[str, Record]) -> list[str]:
    """What one call measured on a GPU."""
    record = records.get("gpu")
    if record is None:
        return []
    head = prose(
        "A whole step, loader included; MFU is of the rate measured, on real tokens only; the relative error of a",
        "gradient is that of one update without dropout against float64. `python benchmarks/gpu.py`.",
        machine(record),
        f"Measured there: {record['limits']['tflops']:.0f} TFLOP/s of bfloat16 products,",
        f"{record['limits']['copy_tb_per_second']:.1f} TB/s of copying.",
    )
    return ["## On a GPU", "", *head, "", *_gpu_steps(record), "", *prose(*_gpu_parts(record), *_gpu_together(record))]


def _gpu_steps(record: Record) -> list[str]:
    errors = record.get("correct", {})  # of the base alone
    rows = (
        (
            f"{line['size']}, {line['ways']}",
            f"{line['milliseconds']:.1f}",
            f"{line['pair_tokens_per_second']:,.0f}",
            f"{line['mfu']:.1%}",
            f"{line['peak_gib']:.1f}",
            f"{errors[line['ways']]['gradient']:.1e}" if line["size"] == "base" and line["ways"] in errors else "",
        )
        if "milliseconds" in line
        else (f"{line['size']}, {line['ways']}", "out of memory", *[""] * 4)
        for line in record["steps"]
    )
    return grid(("model, ways", "ms a step", "pair tokens/s", "MFU", "peak GiB", "error of a gradient"), rows)


def _gpu_parts(record: Record) -> list[str]:
    return [
        f"Where the time of a step of {size} goes, in ms: "
        f"{', '.join(f'{kind} {spent:.1f}' for kind, spent in of.items())}."
        for size, of in record.get("parts", {}).items()
    ]


def _gpu_together(record: Record) -> list[str]:
    at_once = (
        f"{line['processes']}: {line['all']:,.0f} tokens/s ({line['share_of_lone_speed']:.0%} of a lone speed each)"
        for line in record.get("together", [])
    )
    found = ", ".join(at_once)
    return [f"Small models at once, by processes: {found}."] if found else []


def reliability(records: dict[str, Record]) -> list[str]:
    """The cost of losing nothing (docs/reliability.md), and of two processes."""
    points = []
    if record := records.get("checkpoint"):
        turns = record["turns"]
        points.append(
            f"A checkpoint of the base model with both moments of Adam, {turns[0]['bytes'] / 1e6:,.0f} MB: "
            f"{median((turn['save'] for turn in turns), '.2f')} seconds to write, push to the disk and compare, "
            f"{median((turn['load'] for turn in turns), '.2f')} to read and check. `python benchmarks/checkpoint.py`. "
            + machine(record)
        )
    if record := records.get("tracker"):
        ratios = (f"{name} {of['median_ratio']:.2f}" for name, of in record["trackers"].items() if name != "none")
        points.append(
            "A step of a small network with a line of the journal, by what MLflow's store does, as a ratio to a step "
            f"without a store: {', '.join(ratios)} (*none again* is what two equal turns differ by). "
            f"`python benchmarks/tracker.py`. {machine(record)}"
        )
    if record := records.get("scaling"):
        lines = (
            f"{line['way'].removeprefix('two, ')} {line['times_one_process']:.2f} ({line['lowest']:.2f} to "
            f"{line['highest']:.2f})"
            for line in record["lines"]
            if line["way"] != "one process"
        )
        points.append(
            "Two processes of one thread each, which average gradients over gloo, in times of one process, for equal "
            f"updates (strong) and for updates twice as large (weak): {', '.join(lines)}. "
            f"`python benchmarks/scaling.py`. {machine(record)}"
        )
    if not points:
        return []
    wrapped = (textwrap.wrap(f"- {point}", 120, subsequent_indent="  ", break_on_hyphens=False) for point in points)
    return ["## What reliability costs", "", *(line for point in wrapped for line in point)]


def page(records: dict[str, Record]) -> str:
    """The whole page."""
    parts = [OPENING, waits(), training(records), decoding(records), gpu(records), reliability(records)]
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
