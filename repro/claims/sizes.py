"""The sizes that a claim speaks of: those of the paper, or those its rows have at a scale. Paper: Table 3."""

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from repro.model.config import BASE
from repro.results.labels import FIELDS

Hypers = Mapping[str, Mapping[str, Any]]  # "table/row" -> its hyper-parameters at a scale


def printed_sizes(row: str) -> dict[str, Any]:
    """What "table/row" sets at the paper's size, as far as its name says it: d_k 16 of "table3_B/d_k=16"."""
    named = re.fullmatch(r"[^/]+/(?P<field>\w+)=(?P<value>[\d.]+)", row)
    if named is None:
        return vars(BASE)
    field = FIELDS[named["field"]]
    return {**vars(BASE), field: type(getattr(BASE, field))(named["value"])}


def filled(template: str, better: Mapping[str, Any], worse: Mapping[str, Any]) -> str:
    """A sentence such as "Keys of {worse.d_k} numbers are worse than of {better.d_k}" with the sizes of two rows."""
    return template.format(better=SimpleNamespace(**better), worse=SimpleNamespace(**worse))
