"""Table 1 from measurements that a reader can check: powers, laws, verdicts, and files that cannot be believed."""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path as File
from types import SimpleNamespace
from typing import Any

import pytest
from paper_runs import paper_run

from repro.claims.layers import compare, growth, judged_growth, median_interval, order, power_law, verdicts
from repro.pages.build import build_measured, write
from repro.pages.measured import layers_page
from repro.render.markup import markdown
from repro.results import measured as kept
from repro.results.measured import Count, Measured, Path, ScoringCount, ScoringTime, Steps, Time

GRID: dict[str, Any] = {
    "n": [4, 8, 16], "n_odd": [5, 7], "d": [8, 16], "windows": [3, 5], "n_paths": [8, 16, 32, 64],
    "n_timed": [4, 6, 8, 12, 16], "d_timed": [8, 16], "n_scored": [4, 8], "d_k": [2, 4], "rounds": 13,
}  # fmt: skip
MIXING: dict[str, Callable[[int, int, int], float]] = {
    "self_attention": lambda n, d, w: 4 * n * n * d,
    "recurrent": lambda n, d, w: 2 * n * d * d,
    "gated": lambda n, d, w: 6 * n * d * d,
    "convolution": lambda n, d, w: 2 * w * n * d * d,
    "separable": lambda n, d, w: 2 * w * n * d,
    "restricted": lambda n, d, w: 4 * w * n * d,
}
REST = {"self_attention": 8, "recurrent": 2, "gated": 6, "convolution": 0, "separable": 2, "restricted": 8}  # n d^2
WINDOWED = ("convolution", "separable", "restricted")
LIBRARY = ("library_recurrent", "library_gated")
STAMP: Any = {**paper_run().stamp, "commit": "1" * 40, "device": "a processor", "versions": {"torch": "2.13.0"}}


def line(layer: str, n: int, d: int, window: int | None) -> Count:
    mixing = int(MIXING[layer](n, d, window or 0))
    return Count(layer, n, d, window, mixing + REST[layer] * n * d * d, mixing, 4 * n * d)


def reach(n: int, window: int) -> int:
    return math.ceil((n - 1) / (window // 2))


def as_printed() -> Measured:
    """Measurements as they would be if every claim held, with times to match."""
    windows = {layer: GRID["windows"] if layer in WINDOWED else [None] for layer in MIXING}
    counts = [line(layer, n, d, w) for layer in MIXING for n in GRID["n"] for d in GRID["d"] for w in windows[layer]]
    counts += [Count("feed_forward", n, d, None, 16 * n * d * d, 0, 0) for n in GRID["n"] for d in GRID["d"]]
    for n, d in itertools.product(GRID["n_odd"], GRID["d"]):
        counts += [line("separable", n, d, n), line("self_attention", n, d, None)]
    lengths, chain = GRID["n_paths"], {"self_attention": 2, "convolution": 1, "restricted": 2}
    paths = [Path("self_attention", n, None, 1) for n in lengths] + [Path("recurrent", n, None, n) for n in lengths]
    for n, w in itertools.product(lengths, GRID["windows"]):
        paths += [Path("convolution", n, w, reach(n, w)), Path("restricted", n, w, reach(n, w))]
        paths += [Path("dilated", n, w, math.ceil(math.log(2 * n - 1, w)))]
    times = [
        Time(layer, n, d, 3 if layer in WINDOWED else None, [taken * (1 + i / 100) for i in range(13)])
        for layer, taken in {**dict.fromkeys(MIXING, 3.0), "self_attention": 1.0, **dict.fromkeys(LIBRARY, 2.0)}.items()
        for n, d in itertools.product(GRID["n_timed"], GRID["d_timed"])
    ]
    scored = list(itertools.product(GRID["n_scored"], GRID["d_k"]))
    return Measured(
        grid=GRID,
        settings={"clock": "process_time"},
        counts=counts,
        steps=[
            *(Steps(layer, n, None, n) for layer in ("recurrent", "gated") for n in lengths),
            *(Steps(layer, n, None, steps) for layer, steps in chain.items() for n in lengths),
        ],
        paths=paths,
        times=times,
        scoring_counts=[
            ScoringCount(name, n, d_k, 4 * n * n * d_k, kept * n * n)
            for name, kept in (("dot_product", 8), ("additive", 4 * 7))
            for n, d_k in scored
        ],
        scoring_times=[
            ScoringTime(name, n, d_k, [taken + i / 100 for i in range(13)])
            for name, taken in (("dot_product", 1.0), ("additive", 2.0))
            for n, d_k in scored
        ],
        stamp=STAMP,
    )


def changed(name: str, change: Callable[[Any], Any]) -> Measured:
    """The same with every line of one list changed."""
    measured = as_printed()
    return dataclasses.replace(measured, **{name: [change(line) for line in getattr(measured, name)]})


def replaced(layer: str, **values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A change of the lines of one layer, or of one way to score."""

    def change(line: Any) -> Any:
        if layer not in vars(line).values():
            return line
        return dataclasses.replace(line, **{name: value(line) for name, value in values.items()})

    return change


# Exponents and laws


def sized(n: int, d: int = 1, window: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(n=n, d=d, window=window)


def test_an_exact_power_law_is_found_without_noise() -> None:
    # left-overs of 1e-15 differ between processors, and were published with 12 digits
    points = [sized(n, d, w) for n in (32, 48, 96, 512) for d in (7, 64, 256) for w in (3, 5)]
    fit = power_law(points, (11 * p.n**2 * p.d**-1.5 for p in points))
    assert fit.exponents == {"n": 2.0, "d": -1.5, "window": 0.0}
    assert (set(fit.half_widths.values()), fit.points) == ({0.0}, 24)
    assert math.copysign(1.0, fit.exponents["window"]) == 1.0
    near = power_law(points, (11 * p.n**2 * p.d * (1 + 1e-9 * (p.n == 48)) for p in points))
    assert min(near.half_widths.values()) > 1e-11  # what was measured stays


def test_its_interval_is_the_t_interval_of_a_line() -> None:
    from scipy.stats import linregress, t

    values = dict(zip((1, 2, 4, 8, 16), (1.0, 2.5, 3.5, 9.0, 15.0), strict=True))
    fit = power_law([sized(n) for n in values], values.values())
    line = linregress([math.log(n) for n in values], [math.log(v) for v in values.values()])
    assert fit.exponents["n"] == pytest.approx(line.slope)
    assert fit.half_widths["n"] == pytest.approx(t.ppf(0.975, 3) * line.stderr)


def test_two_points_have_no_interval_and_sizes_that_vary_together_no_exponents() -> None:
    fit = power_law([sized(2), sized(4)], [8, 64])
    assert fit.exponents["n"] == pytest.approx(3)
    assert math.isnan(fit.half_widths["n"])
    with pytest.raises(ValueError, match=r"Expected sizes \['n', 'd'\] that vary by themselves, got 3 points"):
        power_law([sized(n, n) for n in (2, 4, 8)], [2, 4, 8])


def test_the_factor_of_a_law_and_two_sizes_that_tell_none() -> None:
    assert growth([(n, 5, 3 + 2 * n // 5) for n in (5, 10, 20)]) == ("n", pytest.approx(2), pytest.approx(1))
    assert growth([(n, None, n - 1) for n in (5, 10, 20)]).factor == pytest.approx(1)
    assert growth([(1, None, 1), (2, None, 2), (3, None, 4)]) == ("n", pytest.approx(1.5), pytest.approx(27 / 28))
    powers = [(3**i, 3, 2 * i) for i in (1, 2, 3, 4)]
    assert growth(powers) == ("log", pytest.approx(2), pytest.approx(1))
    assert growth([(n, None, 1) for n in (2, 4)]).law == "1"
    with pytest.raises(ValueError, match="expected at least 3 sizes to tell n from its logarithm, got 2"):
        growth([(n, None, n) for n in (2, 4)])


def test_orders_are_written_as_the_paper_writes_them() -> None:
    assert [order(law, "k") for law in ("1", "log", "n")] == ["O(1)", "O(log_k(n))", "O(n/k)"]
    assert [order(law, None) for law in ("1", "log", "n")] == ["O(1)", "O(log(n))", "O(n)"]


# Times


def test_the_interval_of_a_median() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None  # both ends hold it with 15/16
    assert median_interval([6, 5, 4, 3, 2, 1]) == (1, 6)  # with 31/32
    assert median_interval(list(range(9))) == (1, 7)  # with 246/256
    assert median_interval(list(range(9)), error=0.01) == (0, 8)  # with 255/256
    assert median_interval(list(range(9)), error=0.003) is None


def test_times_are_compared_round_by_round_and_against_a_claim_with_more_certainty() -> None:
    slow_machine = [1.0, 9.0, 1.1, 8.0, 1.2, 7.0, 1.3]
    assert compare([1.2 * seconds for seconds in slow_machine], slow_machine) == 1
    assert compare(slow_machine, [1.2 * seconds for seconds in slow_machine]) == -1
    assert compare(slow_machine, slow_machine) == 0
    assert compare([2.0] * 5, [1.0] * 5) == 0  # too few rounds to say
    slow, fast = [1.0] * 9, [1.1] * 9
    assert [compare(slow, fast, sizes=sizes) for sizes in (1, 12, 13)] == [-1, -1, 0]  # 9 rounds: 2 / 512 of 0.05
    assert [compare(fast, slow, sizes=sizes) for sizes in (1, 12, 13)] == [1, 1, 1]
    # one size against contradicts, one open leaves open
    assert judged_growth([1, 1]) == "holds here"
    assert judged_growth([1, 0]) == judged_growth([]) == "inconclusive"
    assert judged_growth([1, 0, -1]) == "does not hold here"


# Verdicts


def test_every_claim_holds_where_it_is_true() -> None:
    found = verdicts(as_printed())
    assert sorted(found) == ["C05", "C06", "C11", "C21", "C22", "C23", "C24"]
    assert {claim: word for claim, (word, _) in found.items()} == dict.fromkeys(found, "holds here")
    assert found["C21"][1] == "15 of 15 cells as printed"
    assert "0.50 d (plain step), 1.50 d (gated step), 1.00 d (whole gated layer)" in found["C22"][1]
    assert "timed at 6 sizes with n < d, n up to 0.75 d" in found["C22"][1]
    assert "recurrent (PyTorch's RNN) 2 (6 decided for self-attention, 0 against, 0 open)" in found["C22"][1]
    # by hand at n = 7, d = 8: (4 n^2 d + 16 n d^2) / (2 n^2 d + 2 n d^2) = 8736 / 1680; 6.57 at n = 5, d = 16
    assert "self-attention and the feed-forward network take 5.2 to 6.57 times the operations" in found["C24"][1]


@pytest.mark.parametrize(
    ("name", "change", "failing"),
    [
        ("steps", replaced("recurrent", steps=lambda line: 1), {"C05", "C21"}),
        ("steps", replaced("self_attention", steps=lambda line: line.n), {"C05", "C21"}),
        ("paths", replaced("dilated", path=lambda line: reach(line.n, line.window)), {"C06", "C21", "C23"}),
        ("paths", replaced("self_attention", path=lambda line: line.n), {"C06", "C21"}),
        ("counts", replaced("restricted", mixing_flops=lambda line: 4 * line.n**2 * line.d), {"C21"}),
        ("counts", replaced("convolution", mixing_flops=lambda line: 2 * line.n * line.d**2), {"C21", "C23"}),
        ("counts", replaced("separable", flops=lambda line: line.flops // 2), {"C24"}),
        ("counts", replaced("feed_forward", flops=lambda line: 20 * line.flops), {"C24"}),
        ("counts", replaced("gated", mixing_flops=lambda line: 6 * line.n * line.d), {"C22"}),
        ("times", replaced("library_gated", seconds=lambda line: [0.5] * 13), {"C22"}),
        ("times", replaced("library_recurrent", seconds=lambda line: [0.5 + 9 * (line.n != 12)] * 13), {"C22"}),
        ("scoring_times", replaced("additive", seconds=lambda line: [0.5] * 13), {"C11"}),
        ("scoring_counts", replaced("additive", saved_bytes=lambda line: 1), {"C11"}),
        ("scoring_counts", replaced("additive", flops=lambda line: 9 * line.flops), {"C11"}),
    ],
)
def test_a_claim_that_does_not_hold_is_said_not_to(name: str, change: Callable[[Any], Any], failing: set[str]) -> None:
    found = {claim: word for claim, (word, _) in verdicts(changed(name, change)).items()}
    assert {claim for claim, word in found.items() if word == "does not hold here"} == failing
    assert {word for claim, word in found.items() if claim not in failing} == {"holds here"}


def test_a_cell_that_differs_is_named() -> None:
    found = verdicts(changed("paths", replaced("restricted", path=lambda line: 1)))
    assert {claim for claim, (word, _) in found.items() if word == "does not hold here"} == {"C21"}
    assert found["C21"][1] == "14 of 15 cells as printed; not self-attention (restricted): path"


def test_few_rounds_give_no_verdict_on_time_and_only_lengths_below_d_are_asked() -> None:
    few = changed("times", lambda line: dataclasses.replace(line, seconds=line.seconds[:3]))
    assert verdicts(few)["C22"][0] == "inconclusive"

    def slow_beyond(line: Time) -> Time:
        is_beyond = line.layer == "self_attention" and line.n >= line.d  # there a recurrence may well be faster
        return dataclasses.replace(line, seconds=[9.0] * 13) if is_beyond else line

    assert verdicts(changed("times", slow_beyond))["C22"][0] == "holds here"


# The texts


def test_without_lengths_beyond_half_of_every_d_and_all_recurrences_nothing_is_said_of_time() -> None:
    # at n = d / 2 a plain step does as many operations as self-attention: beyond it the claim can fail
    measured = as_printed()
    halves = [time for time in measured.times if time.n in (4, 8, 16)]
    one_width = [time for time in measured.times if (time.n, time.d) != (12, 16)]
    loops = [time for time in measured.times if time.layer not in LIBRARY]
    for times in (halves, one_width, loops):
        assert verdicts(dataclasses.replace(measured, times=times))["C22"][0] == "not judged"


def test_uncommitted_code_is_said_below_the_table() -> None:
    assert "not committed" not in markdown(layers_page(as_printed()))
    dirty = dataclasses.replace(as_printed(), stamp={**STAMP, "dirty": True})
    assert "not committed" in markdown(layers_page(dirty))


def test_its_files_are_a_function_of_the_measurements_in_every_format(tmp_path: File) -> None:
    import pandas as pd

    assert build_measured(tmp_path, Measured) == {}, "without measurements there is no table"
    file = tmp_path / kept.LAYER_COSTS_FOLDER / "measured.json"
    kept.save(tmp_path, as_printed())
    written = write(build_measured(tmp_path, Measured))
    assert {one: one.read_text("utf-8") for one in written} == build_measured(tmp_path, Measured)
    md, tex, sheet = written
    assert "O(n<sup>2</sup> d)" in md.read_text("utf-8")
    formulas = tex.read_text("utf-8")
    assert "$O(n^{2} d)$" in formulas
    assert r"$O(\log_{k}(n))$" in formulas
    assert not re.search(r"\$\$|textasciicircum|U\+", formulas)
    frame = pd.read_csv(sheet)
    mixing = frame[frame["quantity"] == "operations of the mixing"].set_index(["layer", "size"])["exponent"]
    assert mixing["self_attention", "n"] == pytest.approx(2)
    assert list(frame.loc[frame["layer"] == "dilated", "law"]) == ["O(log_k(n))"]
    file.write_text(file.read_text("utf-8").replace('"path": 8', '"path": 9', 1), "utf-8")
    with pytest.raises(ValueError, match=rf"^{file}: edited by hand or damaged.* run experiments/table1\.py again\.$"):
        build_measured(tmp_path, Measured)
