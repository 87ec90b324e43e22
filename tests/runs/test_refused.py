"""What a row cannot bear is said before a run begins: by name, in one sentence, and of rows that were asked for."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from toy_system import Toy

from repro.experiment import Paper, Row
from repro.model.ablations.reach import Restricted, TwoLevel
from repro.model.ablations.relative import Relative, RelativePositions
from repro.model.ablations.scores import UnscaledDot
from repro.model.ablations.static import StaticMixing
from repro.model.attention import ScaledDotProduct
from repro.model.config import Hyper
from repro.model.layers import PostNorm
from repro.model.protocol import Plain
from repro.model.rivals.convs2s import ConvS2S
from repro.model.transformer import Transformer
from repro.runs.options import Options
from repro.runs.refused import refuse_systems
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.table import Table, rows_of
from repro.runs.task import Translation

SMOKE = SCALES["smoke"]
TASK = Translation("en-de")


def same(base: Hyper) -> Hyper:
    return base


def run(system: Any) -> RunDir:
    """Of a row of this system."""
    row = Row("x", lambda base: replace(base, dropout=0.2), Paper(), system=system)
    [found] = planned([Table(name="t", rows=[row], title="")], SMOKE, Options(rows=("x",)))
    return found


class NoSearch(Toy):
    """Trains, and cannot be searched."""

    def start(self, source: torch.Tensor) -> Any:
        raise RuntimeError("no\nsearch here")


# Systems that cannot be made, read or searched ---------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (partial(Transformer, mixx=UnscaledDot), "TypeError: .*unexpected keyword argument 'mixx'"),
        (partial(Transformer, mix=PostNorm), "TypeError: "),
        (partial(Restricted, r=4), "expected an odd r of at least 1, got 4:"),
        (partial(Restricted, r=-1), "expected an odd r of at least 1, got -1:"),
        (partial(ConvS2S, kernel=-1), "RuntimeError: .*negative dimension"),
        (partial(Transformer, mix_source=partial(TwoLevel, segment=0)), "ZeroDivisionError: "),
        (partial(Transformer, mix=Relative), "AssertionError: distances are of a sequence to itself"),
        # training would go well, the search after it would not: cached keys do not stand in their order
        (partial(Transformer, mix=Relative, mix_source=ScaledDotProduct), "AssertionError: distances are of a seq"),
        (NoSearch, "RuntimeError: no search here"),
    ],
)
def test_what_cannot_be_made_read_or_searched_is_refused_in_one_sentence(system: Any, reason: str) -> None:
    start = r"^Row 'x' of t \(.*\): "
    with pytest.raises(ValueError, match=f"{start}{reason}") as refused:
        refuse_systems([run(system)])
    assert "\n" not in str(refused.value)


class Forgetful(Transformer):
    """Its hypotheses change places, its state does not: translations alone would be wrong."""

    def start(self, source: torch.Tensor) -> Any:
        return Unmoved(super().start(source))

    def advance(self, ids: torch.Tensor, state: Any) -> Any:
        hidden, grown = super().advance(ids, state.of)
        return hidden, Unmoved(grown)


class Unmoved(NamedTuple):
    of: Any

    def reorder(self, rows: torch.Tensor) -> "Unmoved":
        return self if rows.tolist() == [1, 0] else Unmoved(self.of.reorder(rows))


class TwoLevelAnew(Plain, Transformer):  # type: ignore[misc]
    """Reads its prefix anew, so its segments are those of the sentence."""


@pytest.mark.parametrize(
    ("system", "length"),
    [(partial(Transformer, mix=TwoLevel), r"\d"), (Forgetful, "3")],
)
def test_a_search_that_reads_another_prefix_than_training_is_refused(system: Any, length: str) -> None:
    said = f"expected a search that reads what training reads, but after {length} tokens its state differs by "
    with pytest.raises(ValueError, match=f"^Row 'x' of t .* {said}"):
        refuse_systems([run(system)])


@pytest.mark.parametrize(
    "system",
    [None, partial(Transformer, mix_source=TwoLevel), partial(TwoLevelAnew, mix=TwoLevel), StaticMixing,
     partial(Restricted, r=1), partial(RelativePositions, clip=0), Toy],
)  # fmt: skip
def test_good_systems_pass_and_no_random_number_is_drawn(system: Any) -> None:
    before = torch.get_rng_state()
    refuse_systems([run(system)])
    assert torch.equal(torch.get_rng_state(), before)


# Lambdas of other rows ---------------------------------------------------------------------------------------


def test_a_system_without_a_name_stops_its_own_row_alone() -> None:
    rows = [
        Row("nameless", same, Paper(), system=partial(Toy, depth=lambda: 3)),
        Row("fine", same, Paper(), system=Toy),
    ]
    table = Table(name="t", rows=rows, title="")
    [(_, _, found, _)] = rows_of([table], SMOKE.base, ["fine"], TASK)
    assert found.name == "fine"
    for chosen in ([], ["nameless"]):
        with pytest.raises(ValueError, match="A system: expected something with a name of its own"):
            rows_of([table], SMOKE.base, chosen, TASK)


def test_rows_that_were_not_asked_for_are_compared_all_the_same() -> None:
    table = Table(name="t", rows=[Row(name, same, Paper(), system=Toy) for name in "ab"], title="")
    with pytest.raises(ValueError, match=r"^Row 'b' of t is row 'a' of t again"):
        rows_of([table], SMOKE.base, ["b"], TASK)
