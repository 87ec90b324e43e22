"""docs/performance.md and its picture: what one waits for, made from the records of runs and of the benchmarks.

Every number is in a record: of a published run under `results/`, or of a benchmark under `benchmarks/records/`, written
with `--json`. To measure again, run the command shown with a table, then this one.

Run:  python benchmarks/performance.py
"""

import io
import json
import re
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from repro.storage import atomic

Record = dict[str, Any]

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "benchmarks" / "records"
RUNS = ROOT / "results"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = PAGE.with_suffix(".png")
NAMES = {  # the peers in `peers.py`, by names that readers know
    "marian": "Hugging Face MarianMT",
    "opennmt": "OpenNMT-py",
    "reference": "torch.nn.Transformer",
}
OPENING = [
    "# Performance",
    "",
    "What you wait for, and how that compares. `python benchmarks/performance.py` makes this page from the records of",
    "published runs and of benchmarks; nothing on it was typed in. Each table names its processor and commit.",
]


def load() -> dict[str, Record]:
    """The records of benchmarks by file name without ending."""
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(RECORDS.glob("*.json"))}


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], below: Sequence[str] = ()) -> list[str]:
    """A Markdown table; `below` its head are the sides at which columns stand."""
    return [f"| {' | '.join(row)} |" for row in (head, below or ["---"] * len(head), *rows)]


def prose(*sentences: str) -> list[str]:
    """A paragraph, broken into lines."""
    return textwrap.wrap(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False)


def median(values: Iterable[float], form: str = ",.0f") -> str:
    """The median, then the lowest and the highest value."""
    each = sorted(values)
    return f"{statistics.median(each):{form}} ({each[0]:{form}} to {each[-1]:{form}})"


def renewed(page: Path, text: str, mark: str, lines: Iterable[str]) -> str:
    """The text of a page with other lines between a mark and the end.

    Raises ValueError if the mark is missing, or there twice.
    """
    begin, end = f"<!-- made by benchmarks/{mark} -->\n", "\n<!-- end -->"
    if text.count(begin) != 1:
        raise ValueError(f"{page}: expected one mark {begin.strip()}, got {text.count(begin)}. Restore the page.")
    made = "\n".join(lines)
    return re.sub(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", lambda _: made, text, count=1, flags=re.DOTALL)


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
            "Whether bfloat16 pays depends on the processor: compare the rows of one size.",
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
    record = records["gpu"]
    head = prose(
        "A whole step, loader included; MFU is of the rate measured, on real tokens only; the relative error of a",
        "gradient is that of one update without dropout against float64. `python benchmarks/gpu.py`.",
        machine(record),
        f"Measured there: {record['limits']['tflops']:.0f} TFLOP/s of bfloat16 products,",
        f"{record['limits']['copy_tb_per_second']:.1f} TB/s of copying.",
    )
    return ["## On a GPU", "", *head, "", *_gpu_steps(record), "", *prose(*_gpu_parts(record))]


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


def reliability(records: dict[str, Record]) -> list[str]:
    """The cost of losing nothing (docs/reliability.md), and of two processes."""
    saved, tracked, scaled = (records[name] for name in ("checkpoint", "tracker", "scaling"))
    turns = saved["turns"]
    ratios = (f"{name} {of['median_ratio']:.2f}" for name, of in tracked["trackers"].items() if name != "none")
    times = (
        f"{line['way'].removeprefix('two, ')} {line['times_one_process']:.2f} ({line['lowest']:.2f} to "
        f"{line['highest']:.2f})"
        for line in scaled["lines"]
        if line["way"] != "one process"
    )
    points = (
        f"A checkpoint of the base model with both moments of Adam, {turns[0]['bytes'] / 1e6:,.0f} MB: "
        f"{median((turn['save'] for turn in turns), '.2f')} seconds to write, push to the disk and compare, "
        f"{median((turn['load'] for turn in turns), '.2f')} to read and check. `python benchmarks/checkpoint.py`. "
        f"{machine(saved)}",
        "A step of a small network with a line of the journal, by what MLflow's store does, as a ratio to a step "
        f"without a store: {', '.join(ratios)} (*none again* is what two equal turns differ by). "
        f"`python benchmarks/tracker.py`. {machine(tracked)}",
        "Two processes of one thread each, which average gradients over gloo, in times of one process, for equal "
        f"updates (strong) and for updates twice as large (weak): {', '.join(times)}. "
        f"`python benchmarks/scaling.py`. {machine(scaled)}",
    )
    wrapped = (textwrap.wrap(f"- {point}", 120, subsequent_indent="  ", break_on_hyphens=False) for point in points)
    return ["## What reliability costs", "", *(line for point in wrapped for line in point)]


def page(records: dict[str, Record]) -> str:
    """The whole page."""
    parts = [OPENING, waits(), training(records), decoding(records), gpu(records), reliability(records)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


# ---- the picture


class Bar(NamedTuple):
    """Tokens per second of one side: the median, the slowest and the fastest pass."""

    name: str
    speed: float
    low: float
    high: float


def picture(records: dict[str, Record]) -> bytes:
    """A panel for each comparison: bars of median tokens per second, lines from the lowest pass to the highest."""
    from matplotlib.figure import Figure

    panels = [panel for name, record in records.items() for panel in panels_of(name, record)]
    columns = 2
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(9.6, 2.3 * rows + 0.5), layout="constrained")
    for place, (title, bars) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        ordered = sorted(bars, key=lambda bar: bar.speed)
        names, speeds = [bar.name for bar in ordered], [bar.speed for bar in ordered]
        colours = ["#c44e52" if name.startswith("ours") else "#9aa5b1" for name in names]
        axes.barh(names, speeds, color=colours)
        ends = [[bar.speed - bar.low for bar in ordered], [bar.high - bar.speed for bar in ordered]]
        axes.errorbar(speeds, names, xerr=ends, fmt="none", ecolor="#333333", elinewidth=1, capsize=2.5)
        for bar in ordered:
            axes.annotate(
                f"{bar.speed:,.0f}", (bar.high, bar.name), (4, 0), textcoords="offset points", va="center", fontsize=7
            )
        axes.set_title(title, fontsize=8.5, loc="left")
        axes.set_xlabel("tokens per second", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlim(0, 1.17 * max(bar.high for bar in ordered))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.supxlabel(note(records), fontsize=7.5, color="#555555")
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=130, metadata={"Software": None})
    return made.getvalue()


def panels_of(name: str, record: Record) -> Iterator[tuple[str, list[Bar]]]:
    """The title and bars of each panel; each number of threads has a panel of its own."""
    if name.startswith("train-"):
        clock = ", of processor time" * (record["clock"] == "cpu_seconds")
        how = f"{record['precision']}, {_threads(record['threads'])}{clock}"
        title = f"training {record['size']} ({size_of(record)})\n{how}"
        yield (
            title,
            [
                Bar(NAMES.get(side, side), of["tokens_per_second"], of["lowest"], of["highest"])
                for side, of in record["sides"].items()
            ],
        )
    elif name.startswith("decode-"):
        for threads in dict.fromkeys(line["threads"] for line in record["lines"]):
            lines = [line for line in record["lines"] if line["threads"] == threads]
            unit = next(line["pieces per second"] for line in lines if line["ratio"] == 1)
            title = f"translating, {record['settings']['size']}\nbeam {record['settings']['beam']}, {_threads(threads)}"
            yield title, [_translating(line, unit) for line in lines]


def _translating(line: dict[str, Any], unit: float) -> Bar:
    """The bar of a translator: passes are given as ratios to CTranslate2 in float32, whose speed is `unit`."""
    speed = line["pieces per second"]
    low, high = (unit * line[f"{end} ratio"] for end in ("lowest", "highest"))
    return Bar(line["engine"], speed, min(low, speed), max(high, speed))


def _threads(n: int) -> str:
    return f"{n} thread{'s' * (n != 1)}"


def note(records: dict[str, Record]) -> str:
    """A note on the processor, and on the meaning of the lines."""
    of = [one["stamp"] for name, one in records.items() if name.startswith(("train-", "decode-"))]
    processors = " and ".join(dict.fromkeys(stamp["device"] or stamp["cpu"] for stamp in of))
    return (
        f"{processors}. Bars: medians; lines: from the lowest pass to the highest.\n"
        "Translating: the lines are of ratios to CTranslate2 float32, taken turn by turn, at its speed."
    )


def size_of(record: Record) -> str:
    """The size of a model in words: N 2, d_model 128, d_ff 512, h 4."""
    hyper = record["hyper"]
    return f"N {hyper['n_layers']}, d_model {hyper['d_model']}, d_ff {hyper['d_ff']:,}, h {hyper['n_heads']}"


def main() -> None:
    """Write page and picture."""
    records = load()
    atomic.write_text(PAGE, page(records))
    atomic.write_bytes(PICTURE, picture(records))
    print(PAGE)


if __name__ == "__main__":
    main()
