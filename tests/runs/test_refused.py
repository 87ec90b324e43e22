"""What a row cannot bear is said before a run begins: by name, in one sentence, and of rows that were asked for."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from toy_system import Toy

from repro.experiment import Paper, Row
from repro.model.ablations.reach import Restricted, TwoLevel
from repro.model.ablations.relative import Relative, RelativePositions
from repro.model.ablations.scores import UnscaledDot
from repro.model.ablations.static import StaticMixing
from repro.model.attention import MultiHeadAttention, ScaledDotProduct
from repro.model.build import build, sketched
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.layers import PostNorm
from repro.model.rivals.bytenet import ByteNet
from repro.model.rivals.convs2s import ConvS2S
from repro.model.transformer import Transformer
from repro.results.search import Search
from repro.runs.options import Options
from repro.runs.refused import n_places, refuse_long_lines, refuse_systems
from repro.runs.scales import SCALES
from repro.runs.table import Cell, Table, cells
from repro.runs.task import Translation

SMOKE = SCALES["smoke"]
TASK = Translation("en-de")


def same(base: Hyper) -> Hyper:
    return base


def learned(base: Hyper) -> Hyper:
    return replace(base, learned_positions=True)


def cell(system: Any, change: Any = same) -> Cell:
    row = Row("x", change, Paper(), system=system)
    return Cell(table="t", position=0, row=row, hyper=change(SMOKE.base), seed=1, task=TASK)


class NoSearch(Toy):
    """Trains, and cannot be searched."""

    def start(self, source: torch.Tensor) -> Any:
        raise RuntimeError("no\nsearch here")


class WithPlaces(Toy):
    """Says itself how many tokens it has places for."""

    n_places = 13


# Systems that cannot be made, read or searched ---------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (partial(Transformer, mixx=UnscaledDot), "TypeError: .*unexpected keyword argument 'mixx'"),
        (partial(Transformer, mix=PostNorm), "TypeError: "),
        (partial(Transformer, mix=torch.nn.Identity), "TypeError: "),
        (partial(ConvS2S, kernel=-1), "RuntimeError: .*negative dimension"),
        (partial(ByteNet, kernel=-1), "RuntimeError: .*negative dimension"),
        (partial(RelativePositions, clip=-1), "RuntimeError: .*negative dimension"),
        (partial(Transformer, mix_source=partial(TwoLevel, segment=0)), "ZeroDivisionError: "),
        (partial(Transformer, mix_source=partial(TwoLevel, segment=-2)), "RuntimeError: "),
        (partial(Transformer, mix=Relative), "AssertionError: distances are of a sequence to itself"),
        # training would go well, the search after it would not: cached keys do not stand in their order
        (partial(Transformer, mix=Relative, mix_source=ScaledDotProduct), "AssertionError: distances are of a seq"),
        (NoSearch, "RuntimeError: no search here"),
    ],
    ids=["misspelt", "no mixing", "no mixing that says so", "kernel", "kernel of ByteNet", "clip", "segment",
         "negative segment", "relative source", "relative search", "no search"],
)  # fmt: skip
def test_what_cannot_be_made_read_or_searched_is_refused_in_one_sentence(system: Any, reason: str) -> None:
    start = r"^Row 'x' of t \(.*\): expected a system that can be made, read and searched, got "
    with pytest.raises(ValueError, match=f"{start}{reason}") as refused:
        refuse_systems([cell(system)], SMOKE, Options())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "system",
    [None, partial(Transformer, mix_source=TwoLevel), StaticMixing, partial(Restricted, r=1), partial(Restricted, r=7),
     partial(RelativePositions, clip=0), partial(ConvS2S, kernel=1), Toy],
)  # fmt: skip
def test_others_are_not_and_no_number_is_drawn(system: Any) -> None:
    before = torch.get_rng_state()
    refuse_systems([cell(system)], SMOKE, Options())
    assert torch.equal(torch.get_rng_state(), before)


# A reach that sees nothing, or not the same on both sides ----------------------------------------------------


def test_a_reach_of_nothing_would_see_everything() -> None:
    """Why it is refused: a query that may see nothing has uniform weights, over the future as well."""
    model = build(partial(Restricted, r=0), replace(SMOKE.base, n_layers=1), 7).eval()
    maps = model.attention_maps(torch.tensor([[3, 4, 1]]), torch.tensor([[0, 5, 6]]))
    [own] = [weights for name, weights in maps.items() if name.startswith("decoder") and "self" in name]
    torch.testing.assert_close(own, torch.full_like(own, 1 / 3))
    assert isinstance(model.decoder[0].self_attention, MultiHeadAttention)


@pytest.mark.parametrize("r", [0, -1, -3, 4, 2.5])
def test_a_reach_is_odd_and_sees_itself(r: float) -> None:
    with pytest.raises(ValueError, match=rf"^Row 'x' of t \(.*\): expected an odd r of at least 1, got {r}:"):
        refuse_systems([cell(partial(Restricted, r=r))], SMOKE, Options())


# Lambdas of other rows ---------------------------------------------------------------------------------------


def test_a_system_without_a_name_stops_its_own_row_alone() -> None:
    rows = [
        Row("nameless", same, Paper(), system=partial(Toy, depth=lambda: 3)),
        Row("fine", same, Paper(), system=Toy),
    ]
    table = Table(name="t", rows=rows, title="")
    [found] = cells([table], SMOKE.base, seeds=[1], chosen=["fine"], task=TASK)
    assert found.row.name == "fine"
    for chosen in ([], ["nameless"]):
        with pytest.raises(ValueError, match=r"^Row 'nameless' of t: A system: expected a class or a function with"):
            cells([table], SMOKE.base, seeds=[1], chosen=chosen, task=TASK)


def test_rows_that_were_not_asked_for_are_compared_all_the_same() -> None:
    table = Table(name="t", rows=[Row(name, same, Paper(), system=Toy) for name in "ab"], title="")
    with pytest.raises(ValueError, match=r"^Row 'b' of t is row 'a' of t again"):
        cells([table], SMOKE.base, seeds=[1], chosen=["b"], task=TASK)


# Lines longer than a model has places ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "change", "expected"),
    [
        (None, same, None),
        (None, learned, LEARNED_POSITIONS),
        (Toy, same, None),
        (StaticMixing, same, LEARNED_POSITIONS),
        (StaticMixing, learned, LEARNED_POSITIONS),
        (ConvS2S, same, LEARNED_POSITIONS),
        (WithPlaces, same, 13),
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


class Words:
    """A tokenizer of words."""

    def encode(self, lines: list[str]) -> tuple[Any, Any]:
        lengths = [len(line.split()) + 1 for line in lines]  # and the end symbol
        return np.zeros(sum(lengths), np.int32), np.cumsum([0, *lengths])


def text(*pairs: tuple[int, int]) -> Any:
    """Pairs of so many words on each side."""
    return SimpleNamespace(pairs=lambda: [(" ".join("s" * n), " ".join("t" * m)) for n, m in pairs])


def run(
    system: Any = WithPlaces,
    *,
    extra: int = 4,
    max_length: int = 13,
    finished: bool = False,
    backend: str = "torch",
    further: Any = None,
    **splits: Any,
) -> Any:
    """Of 13 places, of which a search takes 4 more than it reads, if nobody says otherwise."""
    fits = {name: split([2, 9], [13, 2]) for name in ("dev", "test")}
    prepared = SimpleNamespace(**{"train": split([13], [13]), **fits, **splits}, tokenizer=Words())
    task = SimpleNamespace(search=Search(extra=extra))
    scale = SimpleNamespace(max_length=max_length)
    settings = SimpleNamespace(
        table="t", row="x", system=system, hyper=SMOKE.base, task=task, scale=scale, backend=backend
    )
    corpus = SimpleNamespace(further=further or {})
    return SimpleNamespace(settings=settings, prepared=prepared, corpus=corpus, finished=lambda: finished)


def test_lines_that_just_fit_are_read() -> None:
    refuse_long_lines([run()])
    refuse_long_lines([run(None, dev=split([9_999], [9_999]), max_length=9_999)])
    refuse_long_lines([run(max_length=99)])
    refuse_long_lines([run(dev=split([10], [2]), finished=True)])  # its search took fewer
    refuse_long_lines([run(further={"other": text((2, 2), (8, 12))})])
    refuse_long_lines([run(None, dev=split([4_092], [4_096]), train=split([9_999], [1]), backend="ctranslate2")])


@pytest.mark.parametrize(
    ("unfit", "message"),
    [
        (
            run(dev=split([9, 2, 10], [2, 2, 2])),
            r"at most 9 tokens in a source line of dev, as its model has 13 places and a search may write 4 more than "
            r"it reads, got 10 in line 3\. Split",
        ),
        (
            run(test=split([2, 2], [2, 14])),
            r"at most 13 tokens in a target line of test, as its model has 13 places, got 14 in line 2\. Split",
        ),
        (
            run(train=split([3], [14]), max_length=14),
            r"at most 13 tokens in a target line of train, as its model has 13 places, got 14 in a line\. Choose a",
        ),
        (
            run(further={"other": text((2, 2), (9, 2))}),
            r"at most 9 tokens in a source line of other, as its model has 13 places and a search may write 4 more "
            r"than it reads, got 10 in line 2\. Split",
        ),
        (
            run(further={"other": text((2, 13), (8, 12))}),
            r"at most 13 tokens in a target line of other, as its model has 13 places, got 14 in line 1\. Split",
        ),
        (
            run(None, dev=split([4_093], [2]), backend="ctranslate2"),
            r"at most 4,092 tokens in a source line of dev, as CTranslate2 is given 4,096 places and a search may "
            r"write 4 more than it reads, got 4,093 in line 1\. Split .*, or translate with torch, --backend torch\.$",
        ),
        (
            run(None, test=split([2], [4_097]), backend="ctranslate2-int8"),
            r"at most 4,096 tokens in a target line of test, as CTranslate2 is given 4,096 places, got 4,097 in line 1",
        ),
    ],
    ids=["dev", "test", "train", "further-source", "further-target", "ctranslate2", "ctranslate2-int8"],
)
def test_a_line_that_does_not_fit_is_named(unfit: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Row 'x' of t: expected {message}"):
        refuse_long_lines([unfit])


PROGRAM = """
import sys
from dataclasses import replace
from repro.experiment import Paper, Row, main

rows = [Row("learned", lambda base: replace(base, learned_positions=True), Paper())]
main("long", rows, sys.argv[1:])
"""


def test_the_command_ends_before_a_run_folder_is_made(tmp_path: Path) -> None:
    """A line of 600 words, in dev: of as many tokens at least."""
    for name, n in {"train": 60, "dev": 4, "test": 4}.items():
        for language in ("en", "de"):
            lines = [f"{i} ab cd {language}" for i in range(n)]
            if name == "dev" and language == "en":
                lines[2] = " ".join(["ab"] * 600)
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    options = ["--scale=smoke", "--corpus=folder", f"--data-dir={tmp_path}", "--vocab-size=300", "--steps=10"]
    places = [f"--{name}-dir={tmp_path / name}" for name in ("results", "runs", "cache")]
    tracking = f"--tracking-uri=sqlite:///{tmp_path / 'mlflow.db'}"
    words = [sys.executable, "-c", PROGRAM, *options, *places, tracking, "--rows=learned"]
    ended = subprocess.run(words, capture_output=True, text=True, env=os.environ)
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2, ended.stderr
    assert said.startswith("error: Row 'learned' of long: expected at most 462 tokens in a source line of dev, ")
    assert ", got 601 in line 3. Split that line or remove it on both sides, or " in said
    assert not [*(tmp_path / "runs").glob("*")]
