"""What a row cannot bear is said before a run begins: by name, in one sentence, and of rows that were asked for.

Lines that are longer than a model has places are refused by number.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from own_signals import own_signals, places
from text_folders import own_text, text_folder
from toy_system import Toy

from repro.decoding.search import Search
from repro.experiment import Paper, Row, main
from repro.model.ablations.reach import Restricted, TwoLevel
from repro.model.ablations.relative import Relative, RelativePositions
from repro.model.ablations.scores import UnscaledDot
from repro.model.ablations.static import StaticMixing
from repro.model.attention import ScaledDotProduct
from repro.model.build import sketched
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.layers import PostNorm
from repro.model.protocol import Plain
from repro.model.rivals.convs2s import ConvS2S
from repro.model.transformer import Transformer
from repro.runs.load import score_sentences
from repro.runs.options import Options
from repro.runs.refused import n_places, refuse_long_lines, refuse_systems
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.table import Table, Translation, rows_of

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


@pytest.mark.parametrize(("system", "length"), [(partial(Transformer, mix=TwoLevel), r"\d"), (Forgetful, "3")])
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
    systems = {"nameless": partial(Toy, depth=lambda: 3), "fine": Toy}
    table = Table(name="t", rows=[Row(name, same, Paper(), system=of) for name, of in systems.items()], title="")
    [(_, _, found, _)] = rows_of([table], SMOKE.base, ["fine"], TASK)
    assert found.name == "fine"
    for chosen in ([], ["nameless"]):
        with pytest.raises(ValueError, match="A system: expected a class at the top of a module"):
            rows_of([table], SMOKE.base, chosen, TASK)


# Lines ----------------------------------------------------------------------------------------------------


def learned(base: Hyper) -> Hyper:
    return replace(base, learned_positions=True)


class WithPlaces(Toy):
    """Says itself how many tokens it has places for."""

    n_places = 13


@pytest.mark.parametrize(
    ("system", "change", "expected"),
    [
        (None, same, None),
        (None, learned, LEARNED_POSITIONS),
        (StaticMixing, same, LEARNED_POSITIONS),
        (ConvS2S, same, LEARNED_POSITIONS),
        (partial(WithPlaces, depth=2), same, 13),
    ],
)
def test_the_places_of_a_model(system: Any, change: Any, expected: int | None) -> None:
    model = sketched(system, change(SMOKE.base), 11)
    assert n_places(model) == expected
    if expected == LEARNED_POSITIONS:  # as many it reads, and not one more
        source = torch.ones(1, expected + 1, dtype=torch.int64, device="meta")
        memory = model.encode(source[:, :expected])
        model.decode(source[:, :expected], memory, source[:, :expected])
        for reads_more in (lambda: model.encode(source), lambda: model.decode(source, memory, source[:, :expected])):
            with pytest.raises(ValueError, match=rf"end at (place )?{expected}"):
                reads_more()


def split(source: list[int], target: list[int]) -> Any:
    return SimpleNamespace(
        source=SimpleNamespace(lengths=np.array(source)), target=SimpleNamespace(lengths=np.array(target))
    )


def bounded(system: Any = WithPlaces, *, finished: bool = False, backend: str = "torch", **splits: Any) -> Any:
    """Of 13 places, of which a search takes 4 more than it reads, if nobody says otherwise."""
    fits = {name: split([2, 9], [13, 2]) for name in ("dev", "test")}
    return SimpleNamespace(
        spec=SimpleNamespace(system=system, hyper=SMOKE.base, backend=backend),
        table="t",
        row="x",
        task=SimpleNamespace(search=Search(extra=4)),
        prepared=SimpleNamespace(**fits | splits),
        finished=lambda: finished,
    )


def test_lines_that_just_fit_are_read() -> None:
    refuse_long_lines([bounded()])
    refuse_long_lines([bounded(None, dev=split([9_999], [9_999]))])
    refuse_long_lines([bounded(dev=split([10], [2]), finished=True)])  # its search took fewer
    refuse_long_lines([bounded(None, dev=split([4_092], [4_096]), backend="ctranslate2")])


def test_a_line_that_does_not_fit_is_named() -> None:
    large = bounded(None, dev=split([4_093], [2]), backend="ctranslate2")
    for unfit, message in (
        (bounded(dev=split([9, 2, 10], [2, 2, 2])), "9 tokens in a source line of dev .*, got 10 in line 3"),
        (bounded(test=split([2, 2], [2, 14])), "13 tokens in a target line of test .*, got 14 in line 2"),
        (large, "4,092 tokens in a source .*, got 4,093 in line 1"),
    ):
        with pytest.raises(ValueError, match=rf"^expected at most {message}\. Split that line"):
            refuse_long_lines([unfit])


@pytest.mark.parametrize(("sides", "name"), [((14, 2), "source"), ((2, 14), "target")])
def test_a_line_to_be_scored_has_to_fit(sides: tuple[int, int], name: str) -> None:
    def encode(lines: list[str]) -> tuple[Any, Any]:
        offsets = np.cumsum([0, *map(len, lines)])
        return np.ones(offsets[-1], np.uint16), offsets

    trained: Any = SimpleNamespace(model=sketched(WithPlaces, SMOKE.base, 11), tokenizer=SimpleNamespace(encode=encode))
    said = rf"at most 13 tokens in a line of the {name}, for which the model has places, got 14 in line 2\. Split"
    with pytest.raises(ValueError, match=said):
        score_sentences(trained, *(["xx", "x" * n] for n in sides))


def test_the_command_ends_before_a_run_folder_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of 600 words, in dev: of as many tokens at least."""
    splits = own_text(words=11)
    splits["dev"][2] = " ".join(["en1"] * 600), "de1"
    text_folder(tmp_path, **splits)
    options = ["--scale=smoke", "--corpus=folder", f"--data-dir={tmp_path}", "--vocab-size=300", "--steps=10"]
    with own_signals(), pytest.raises(SystemExit, match="2"):
        main("long", [Row("learned", learned, Paper())], [*options, *places(tmp_path, "--rows=learned")])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: expected at most 502 tokens in a source line of dev for row 'learned' of long, ")
    assert said.endswith(", got 1,201 in line 3. Split that line.")
    assert not [*(tmp_path / "runs").glob("*")]
