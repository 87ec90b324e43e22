"""The command line of a benchmark, and the record that it writes."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.results.provenance import provenance
from repro.storage import atomic


def new_parser(about: str | None) -> argparse.ArgumentParser:
    """What reads the options of a benchmark; `about` is its docstring. All have --json."""
    made = argparse.ArgumentParser(
        allow_abbrev=False, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", type=Path, help="write the record there")
    return made


def save(path: Path | None, record: Mapping[str, Any], stamp: Mapping[str, Any] | None = None) -> None:
    """Write a record, with the machine and the code that it is of, where a path was given."""
    if path:
        atomic.write_json(path, {**record, "stamp": dict(stamp or provenance("cpu"))})


def show(lines: Sequence[Mapping[str, Any]], *columns: str) -> None:
    """Print lines as a table, all columns or these."""
    from pandas import DataFrame  # here, as the benchmarks of a card run without it

    frame = DataFrame(lines, columns=[*columns] or None)
    print(frame.to_string(index=False, float_format="{:,.6g}".format), flush=True)
