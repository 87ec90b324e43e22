"""The numbers behind the pictures of positions, learning rate and saturation."""

import importlib
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from repro.figures.mechanism import draw_saturation, encodings, jacobian_norm, saturation, schedules, wavelengths
from repro.model.config import BASE
from repro.model.embedding import sinusoids


def test_the_encodings_are_the_models() -> None:
    np.testing.assert_allclose(encodings(13, 14), sinusoids(13, 14).numpy(), atol=1e-6)


def test_a_wave_repeats_after_its_length() -> None:
    d_model = 8
    lengths = wavelengths(d_model)
    assert lengths[0] == pytest.approx(2 * math.pi)
    assert lengths[-1] == pytest.approx(2 * math.pi * 10_000 ** (6 / 8))
    pair = 1  # dimensions 2 and 3: the wave is 10 times as long
    angle = 2 * math.pi * 63 / lengths[pair]
    assert encodings(64, d_model)[63, 2 * pair] == pytest.approx(math.sin(angle))


def test_the_scales_own_schedule_stands_first_and_each_has_its_printed_peak() -> None:
    own = replace(BASE, d_model=64, warmup=800, steps=1_800)
    found = schedules("laptop", own)
    assert (found[0].label, found[0].d_model, found[0].warmup, found[0].steps) == ("scale laptop", 64, 800, 1_800)
    assert [round(one.peak, 6) for one in found[1:3]] == [0.000699, 0.000494]
    assert found[1].rates([4_000, 16_000]) == pytest.approx([found[1].peak, found[1].peak / 2])


def test_the_jacobians_norm_without_the_jacobian() -> None:
    scores = np.random.default_rng(1).normal(size=(3, 5)) * 2
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    whole = [np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p]
    np.testing.assert_allclose(jacobian_norm(scores), whole)
    assert jacobian_norm(np.array([0.0, 1e4])) == 0  # all on one key: nothing is passed back
    assert jacobian_norm(np.zeros(2)) == pytest.approx(0.5)  # four entries of a quarter
    # four of p (1 - p), p near e^-30
    assert jacobian_norm(np.array([30.0, 0.0])) == pytest.approx(2 * np.exp(-30.0), rel=1e-9, abs=0)


def test_scores_spread_as_d_k_and_scaling_keeps_the_gradient() -> None:
    found = saturation()
    np.testing.assert_allclose(found.variance, found.d_k, rtol=0.1)
    last = found.d_k.index(512)
    assert found.plain[last] < 0.5 * found.scaled[last]
    assert max(found.scaled) < 1.1 * min(found.scaled)
    assert found.plain[0] == found.scaled[0]  # at d_k = 1 there is nothing to scale


def test_a_query_and_its_keys_drawn_in_full_give_the_same() -> None:
    generator = np.random.default_rng(2)
    q, k = generator.normal(size=(2_000, 1, 64)), generator.normal(size=(2_000, 32, 64))
    scores = (q * k).sum(-1)
    [plain], [scaled] = saturation([64]).plain, saturation([64]).scaled
    assert jacobian_norm(scores).mean() == pytest.approx(plain, rel=0.05)
    assert jacobian_norm(scores / 8).mean() == pytest.approx(scaled, rel=0.05)


def test_another_rounding_of_the_last_digit_changes_no_number_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = saturation([2, 64])
    monkeypatch.setattr("repro.figures.mechanism.jacobian_norm", lambda scores: np.nextafter(jacobian_norm(scores), 1))
    assert saturation([2, 64]) == found


def test_the_picture_of_saturation_has_the_same_bytes_on_every_processor(tmp_path: Path) -> None:
    # without the instructions that NumPy chooses by, as an older processor has none: logarithms end otherwise there
    program = f"""if True:
        from pathlib import Path
        from repro.figures.mechanism import draw_saturation
        draw_saturation(Path({str(tmp_path / "other")!r}))
    """
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    features = " ".join(name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__[name])
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"NPY_DISABLE_CPU_FEATURES": features}, check=True)
    [file] = draw_saturation(tmp_path)
    assert (tmp_path / "other" / file.name).read_bytes() == file.read_bytes()
