"""The chart of speed beside `docs/performance.md`: ours and the peers, with the spread of their passes."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

Record = dict[str, Any]

NAMES = {  # the peers in `peers.py`, by names that readers know
    "marian": "Hugging Face MarianMT",
    "opennmt": "OpenNMT-py",
    "reference": "torch.nn.Transformer",
}


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
