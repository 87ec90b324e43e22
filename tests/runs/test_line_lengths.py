"""Lines that are longer than a model has places: refused by number, with what to do, before hours of work."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from own_signals import own_signals, places
from text_folders import text_folder
from toy_system import Toy

from repro.decoding.search import Search
from repro.experiment import Paper, Row, main
from repro.model.ablations.static import StaticMixing
from repro.model.build import sketched
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.rivals.convs2s import ConvS2S
from repro.runs.line_lengths import n_places, refuse_long_lines
from repro.runs.scales import SCALES
from repro.runs.use import score_sentences

SMOKE, SIZES = SCALES["smoke"], {"train": 60, "dev": 4, "test": 4}


def same(base: Hyper) -> Hyper:
    return base


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


def run(system: Any = WithPlaces, *, finished: bool = False, backend: str = "torch", **splits: Any) -> Any:
    """Of 13 places, of which a search takes 4 more than it reads, if nobody says otherwise."""
    fits = {name: split([2, 9], [13, 2]) for name in ("dev", "test")}
    return SimpleNamespace(
        spec=SimpleNamespace(system=system, hyper=SMOKE.base, backend=backend),
        entry=SimpleNamespace(table="t", row="x"),
        task=SimpleNamespace(search=Search(extra=4)),
        prepared=SimpleNamespace(**fits | splits),
        finished=lambda: finished,
    )


def test_lines_that_just_fit_are_read() -> None:
    refuse_long_lines([run()])
    refuse_long_lines([run(None, dev=split([9_999], [9_999]))])
    refuse_long_lines([run(dev=split([10], [2]), finished=True)])  # its search took fewer
    refuse_long_lines([run(None, dev=split([4_092], [4_096]), backend="ctranslate2")])


@pytest.mark.parametrize(
    ("unfit", "message"),
    [
        (run(dev=split([9, 2, 10], [2, 2, 2])), "9 tokens in a source line of dev .*, got 10 in line 3"),
        (run(test=split([2, 2], [2, 14])), "13 tokens in a target line of test .*, got 14 in line 2"),
        (run(None, dev=split([4_093], [2]), backend="ctranslate2"), "4,092 tokens in a source .*, got 4,093 in line 1"),
    ],
)
def test_a_line_that_does_not_fit_is_named(unfit: Any, message: str) -> None:
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
    splits = {name: [(f"{i} ab cd en", f"{i} ab cd de") for i in range(n)] for name, n in SIZES.items()}
    splits["dev"][2] = " ".join(["ab"] * 600), "2 ab cd de"
    text_folder(tmp_path, **splits)
    options = ["--scale=smoke", "--corpus=folder", f"--data-dir={tmp_path}", "--vocab-size=300", "--steps=10"]
    with own_signals(), pytest.raises(SystemExit, match="2"):
        main("long", [Row("learned", learned, Paper())], [*options, *places(tmp_path, "--rows=learned")])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: expected at most 502 tokens in a source line of dev for row 'learned' of long, ")
    assert said.endswith(", got 601 in line 3. Split that line.")
    assert not [*(tmp_path / "runs").glob("*")]
