"""The measured parts of docs/parsing.md, made from the records of the benchmarks and from a forecast.

Each part is between two marks that name it. A record is written by the benchmark of its name; to measure again, run
the command shown beside a table, and this one after it.

Run:  python benchmarks/parsing.py
"""

import runpy
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from performance import Record, grid, load, machine, prose, renewed

from repro.model.cost import n_parameters
from repro.runs.forecast import CARDS, disk_needed, flops_of, hours_of, vocabulary_of
from repro.runs.options import Options
from repro.runs.run_dir import planned
from repro.runs.scales import SCALES
from repro.runs.table import Table
from repro.storage import atomic

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "parsing.md"
EXPERIMENT = HERE.parent / "experiments" / "table4.py"
PLACES = (("p100", 8), ("a100", 8), ("h100", 1), ("h100", 8))  # cards, the paper's own first, and how many


def search(records: Mapping[str, Record]) -> list[str]:
    """What a wider beam and another alpha gain."""
    record = records["parse_search"]
    last = record["lines"][-1]
    rows = [
        (
            f"{line['beam']}",
            f"{line['alpha']}",
            f"{line['f1']:.1f}",
            "" if i == 0 else _difference(line["f1_more_than_first"]),
            *(f"{line[name]:.1f}" for name in ("precision", "recall", "exact", "mended", "at_limit")),
            f"{statistics.median(line['cpu_seconds']):.1f}",
            f"{line['times_first']['median']:.1f}",
        )
        for i, line in enumerate(record["lines"])
    ]
    return [
        *prose(
            f"{whose(record)}, on {record['sentences']} sentences of dev; every search may write "
            f"{last['extra_length']} tokens more than its input. In brackets the 95 % interval of the difference, over "
            "sentences. *cut*: per cent of outputs that had not ended when the limit came. *times*: processor time "
            f"relative to the first search, the median of {len(last['cpu_seconds'])} turn(s); the target for the last "
            f"is at most {record['bound']}. `python benchmarks/parse_search.py runs/<id>`. {machine(record)}"
        ),
        "",
        *grid(
            (
                *("beam", "alpha", "F1", "more than the first", "precision", "recall", "exact", "mended", "cut"),
                *("processor s", "times"),
            ),
            rows,
        ),
    ]


def by_step(records: Mapping[str, Record]) -> list[str]:
    """When in training outputs become trees."""
    record = records["parse_by_step"]
    kinds = sorted({kind for line in record["lines"] for kind in line["mended_by_kind"]})
    rows = [
        (
            f"{line['step']:,}",
            f"{line['ppl']:.3f}",
            *(f"{line[name]:.1f}" for name in ("f1", "exact", "mended", "at_limit")),
            *(f"{line['mended_by_kind'].get(kind, 0.0):.1f}" for kind in kinds),
        )
        for line in record["lines"]
    ]
    return [
        *prose(
            f"{whose(record)}: perplexity of dev, and what greedy search makes of its first {record['sentences']} "
            "sentences, after so many updates. *cut*: per cent of outputs that had not ended at the limit; then, by "
            "kind, per cent of outputs that had it; an output may have several. "
            f"`python benchmarks/parse_by_step.py`. {machine(record)}"
        ),
        "",
        *grid(("updates", "PPL", "F1", "exact", "mended", "cut", *kinds), rows),
    ]


def forecast(records: Mapping[str, Record]) -> list[str]:
    """The time of the row on the paper's text, computed as `--dry-run` does."""
    found, scale = runpy.run_path(str(EXPERIMENT), run_name=EXPERIMENT.stem), SCALES["paper"]
    table = Table(name=found["TABLE"], rows=found["ROWS"], title=found["TABLE"])
    row = Options(scale=scale.name, rows=("WSJ only",))
    [run] = planned([table], scale, row)
    hyper = run.spec.hyper
    on = [(n, name, planned([table], scale, replace(row, devices=n))[0]) for name, n in PLACES]
    hours = [(n, name, hours_of(one, CARDS[name])) for n, name, one in on]
    return [
        *prose(
            f"Row WSJ only at scale {scale.name}, one seed: "
            f"{n_parameters(hyper, vocabulary_of(run)) / 1e6:.0f} million parameters, "
            f"{hyper.steps:,} updates of {scale.batch_tokens:,} tokens a side, "
            f"{flops_of(run):.1e} floating-point operations; on the disk "
            f"{disk_needed([run])}. By published and extrapolated rates, which `--dry-run` names; nobody has "
            "measured this run:"
        ),
        "",
        *grid(
            ("cards", "hours", "device-hours"),
            [(f"{n} {name}", f"{one:,.1f}", f"{one * n:,.1f}") for n, name, one in hours],
        ),
    ]


PARTS = {"search": search, "by step": by_step, "forecast": forecast}


def whose(record: Record) -> str:
    """Which run a record is about."""
    run = f", run {record['run']}" if "run" in record else ""
    return f"Scale {record['scale']}, row {record['row']}, seed {record['seed']}{run}"


def _difference(of: Mapping[str, Any]) -> str:
    return f"{of['value']:+.1f} [{of['low']:+.1f}, {of['high']:+.1f}]".replace("-", "−")


def rendered(text: str, records: Mapping[str, Record]) -> str:
    """The page with its made parts renewed. Raises ValueError if a mark is missing, or there twice."""
    for name, made in PARTS.items():
        text = renewed(PAGE, text, f"parsing.py: {name}", made(records))
    return text


def main() -> None:
    """Renew the page."""
    atomic.write_text(PAGE, rendered(PAGE.read_bytes().decode(), load()))
    print(PAGE)


if __name__ == "__main__":
    main()
