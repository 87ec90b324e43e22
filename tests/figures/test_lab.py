"""The numbers behind the pictures of single mechanisms: against arithmetic, and what each class says of itself."""

import importlib
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

from repro.figures import lab, style
from repro.figures.lab import NARROW, SOURCE, WRITTEN, entrances
from repro.model.embedding import sinusoids
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import Simple, StaticLast, StaticMean


def test_weights_are_the_softmax_of_what_the_mask_leaves() -> None:
    scores, hidden, weights = lab.masked()
    for q in range(len(lab.WORDS)):
        seen = np.exp(scores[q, : q + 1])
        np.testing.assert_allclose(weights[q, : q + 1], seen / seen.sum())
        assert not weights[q, q + 1 :].any()
        assert hidden[q].tolist() == [k > q for k in range(len(lab.WORDS))]
    [figure] = lab.draw_mask()
    shown = [np.ma.filled(axes.images[0].get_array(), np.nan) for axes in figure.axes]
    np.testing.assert_array_equal(np.isnan(shown[1]), hidden)
    np.testing.assert_allclose(shown[2], weights)
    texts = [text.get_text() for text in figure.axes[1].texts]
    assert [text == r"$-\infty$" for text in texts] == hidden.ravel().tolist()


def test_a_layer_norm_asks_its_token_and_a_batch_norm_every_real_token() -> None:
    layer, batch = lab.shared_cells()
    for b, t, d in np.ndindex(layer.shape):
        assert layer[b, t, d] == ((b, t) == (1, 1))
        assert batch[b, t, d] == (d == 2 and t < lab.REAL[b])
    blue = to_rgba(style.COLOURS[1])
    shown = [[cell.get_facecolor() == blue for cell in axes.patches] for axes in lab.draw_norms()[0].axes]
    assert shown == [layer.ravel().tolist(), batch.ravel().tolist()]


def test_two_equal_scores_and_one_twice_as_large() -> None:
    [figure] = lab.draw_sharpness()
    (twice, one), (jacobian, alike) = ([line.get_ydata() for line in axes.get_lines()] for axes in figure.axes)
    for i, a in ((0, 0.0), (40, 2.0), (200, 10.0)):
        p = np.exp([a, a, 2 * a]) / np.exp([a, a, 2 * a]).sum()
        np.testing.assert_allclose([one[i], twice[i]], p[1:])
        np.testing.assert_allclose(jacobian[i], np.linalg.norm(np.diag(p) - np.outer(p, p)))
    np.testing.assert_allclose(alike, np.linalg.norm(np.eye(3) / 3 - 1 / 9))


def test_codes_are_those_of_the_rows_of_the_lab() -> None:
    experiments = Path(__file__).parents[2] / "experiments"
    rows = {row.name for row in runpy.run_path(str(experiments / "lab_positions.py"))["ROWS"]}
    found = lab.codes()
    assert {*found} - {"sinusoids"} <= rows
    np.testing.assert_allclose(found["sinusoids"], sinusoids(lab.LENGTH, lab.CODE_WIDTH), atol=1e-5)
    lines = {line.get_label(): line for line in lab.draw_codes()[0].axes[-1].get_lines()}
    assert lines["scalar"].get_xdata()[lab.FROM] == 0
    shown = {name: dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) for name, line in lines.items()}
    assert shown["sinusoids"][0] == 1  # of the largest
    assert shown["sinusoids"][-5] == pytest.approx(shown["sinusoids"][5])  # it asks for the distance alone
    assert [shown["one-hot"][gap] for gap in (-1, 0, 1)] == [0, 1, 0]
    assert shown["scalar"][10] == pytest.approx((lab.FROM + 10) / (lab.LENGTH - 1))


def test_the_jacobians_norm_without_the_jacobian() -> None:
    scores = np.random.default_rng(1).normal(size=(3, 5)) * 2
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    whole = [np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p]
    np.testing.assert_allclose(lab.jacobian_norm(scores), whole)
    assert lab.jacobian_norm(np.array([0.0, 1e4])) == 0  # all on one key: nothing is passed back
    assert lab.jacobian_norm(np.zeros(2)) == pytest.approx(0.5)  # four entries of a quarter
    # four of p (1 - p), p near e^-30
    assert lab.jacobian_norm(np.array([30.0, 0.0])) == pytest.approx(2 * np.exp(-30.0), rel=1e-9, abs=0)


def test_scores_spread_as_d_k_and_scaling_keeps_the_gradient() -> None:
    variance, plain, scaled = lab.saturation()
    np.testing.assert_allclose(variance, lab.WIDTHS, rtol=0.1)
    last = lab.WIDTHS.index(512)
    assert plain[last] < 0.5 * scaled[last]
    assert max(scaled) < 1.1 * min(scaled)
    assert plain[0] == scaled[0]  # at d_k = 1 there is nothing to scale


def test_a_query_and_its_keys_drawn_in_full_give_the_same() -> None:
    generator = np.random.default_rng(2)
    q, k = generator.normal(size=(2_000, 1, 64)), generator.normal(size=(2_000, 32, 64))
    scores = (q * k).sum(-1)
    _, [plain], [scaled] = lab.saturation([64])
    assert lab.jacobian_norm(scores).mean() == pytest.approx(plain, rel=0.05)
    assert lab.jacobian_norm(scores / 8).mean() == pytest.approx(scaled, rel=0.05)


def test_the_picture_of_saturation_has_the_same_bytes_on_every_processor(tmp_path: Path) -> None:
    # without the instructions that NumPy chooses by, as an older processor has none: logarithms end otherwise there
    program = f"""if True:
        from pathlib import Path
        from repro.figures import lab, style
        with style.house():
            style.save(Path({str(tmp_path / "other")!r}), *lab.draw_saturation())
    """
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    features = " ".join(name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__[name])
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"NPY_DISABLE_CPU_FEATURES": features}, check=True)
    file = style.save(tmp_path, *lab.draw_saturation())
    assert (tmp_path / "other" / file.name).read_bytes() == file.read_bytes()


# ---- where the source enters a decoder

S, T = len(SOURCE), len(WRITTEN)


def of(kind: type[Simple]) -> Any:
    torch.manual_seed(3)
    return entrances(kind(NARROW, 23).double(), range(3, 3 + S), range(10, 10 + T))


def test_a_simple_decoder_has_the_last_state_and_nothing_after() -> None:
    np.testing.assert_array_equal(of(Simple) > 0, [[False] * (S - 1) + [True], *[[False] * S] * T])


def test_a_static_context_is_the_same_at_each_step() -> None:
    first, *steps = of(StaticMean)
    np.testing.assert_allclose(steps, np.full((T, S), 1 / S))
    np.testing.assert_array_equal(first > 0, [True] + [False] * (S - 1))  # the end of what was read backwards
    np.testing.assert_array_equal(of(StaticLast)[1:] > 0, [[True, *[False] * (S - 2), True]] * T)


def test_soft_alignment_sees_every_word_at_each_step_and_each_time_otherwise() -> None:
    steps = of(SoftAlignment)[1:]
    assert (steps > 0).all()
    np.testing.assert_allclose(steps.sum(1), 1)
    assert np.abs(steps - steps[0]).max() > 1e-5


def test_the_picture_shows_the_shares_of_three_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(lab, "entrances", lambda *of: found.append(entrances(*of)) or found[-1])
    before = torch.random.get_rng_state()
    [figure] = lab.draw_decoders()
    assert torch.equal(torch.random.get_rng_state(), before)
    shown = [np.ma.filled(axes.images[0].get_array(), 0) for axes in figure.axes]
    np.testing.assert_allclose(shown, found)
    assert [axes.get_title().partition(": ")[2] for axes in figure.axes] == [
        "at the start", "each step the same", "each step another",
    ]  # fmt: skip
