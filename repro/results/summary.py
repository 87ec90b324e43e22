"""What the records of one scale come to before any score: how many, of how many rows, how long, at what size."""

from dataclasses import dataclass

from repro.results.frame import ResultSet
from repro.results.labels import label


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The runs of one scale."""

    scale: str
    claim: str  # what a page of this scale shows
    n: int
    n_rows: int
    hours: float  # of training and decoding
    rows_here: tuple[str, ...]  # rows whose name says the paper's size, with the size here: N=2 (here 1)


def summary(result_set: ResultSet) -> Summary | None:
    """None where there is no record."""
    records = sorted(result_set.everything, key=lambda record: (record.table, record.position))
    if not records:
        return None
    named = {record.row: label(record.row, record.hyper) for record in records}
    return Summary(
        scale=result_set.scale,
        claim=str(records[0].settings["claim"]),
        n=len(records),
        n_rows=len({(record.table, record.row) for record in records}),
        hours=sum(record.cost["train_seconds"] + record.cost["decode_seconds"] for record in records) / 3600,
        rows_here=tuple(text for row, text in named.items() if text != row),
    )
