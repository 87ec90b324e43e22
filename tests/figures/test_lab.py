"""The numbers behind the pictures of single mechanisms, against arithmetic and the experiment files."""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from repro.figures import lab
from repro.figures.mechanism import encodings


def numbers(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_weights_are_the_softmax_of_what_the_mask_leaves(tmp_path: Path) -> None:
    found = lab.masked()
    n = len(lab.WORDS)
    for q in range(n):
        seen = np.exp(found.scores[q, : q + 1])
        np.testing.assert_allclose(found.weights[q, : q + 1], seen / seen.sum())
        assert not found.weights[q, q + 1 :].any()
        assert found.hidden[q].tolist() == [k > q for k in range(n)]
    lab.draw_mask(tmp_path)
    cells = numbers(tmp_path, "mask")
    assert len(cells) == n * n
    assert [cell["hidden"] for cell in cells if cell["query"] == "Law"] == ["0", "0", "1", "1", "1", "1"]


def test_a_layer_norm_asks_its_token_and_a_batch_norm_every_real_token(tmp_path: Path) -> None:
    layer, batch = lab.shared_cells()
    for b, t, d in np.ndindex(layer.shape):
        assert layer[b, t, d] == ((b, t) == (1, 1))
        assert batch[b, t, d] == (d == 2 and t < lab.REAL[b])
    lab.draw_norms(tmp_path)
    assert sum(int(cell["batch"]) for cell in numbers(tmp_path, "norms")) == sum(lab.REAL)


def test_two_equal_scores_and_one_twice_as_large() -> None:
    one, twice, jacobian = lab.two_and_twice(np.array([0.0, np.log(2.0), 800.0]))
    np.testing.assert_allclose(one, [1 / 3, 1 / 4, 0], atol=1e-12)
    np.testing.assert_allclose(twice, [1 / 3, 1 / 2, 1], atol=1e-12)
    p = np.array([1 / 4, 1 / 4, 1 / 2])
    np.testing.assert_allclose(jacobian[1], np.linalg.norm(np.diag(p) - np.outer(p, p)))
    assert jacobian[2] == 0


def test_codes_are_those_of_the_rows_of_the_lab(tmp_path: Path) -> None:
    experiments = Path(__file__).parents[2] / "experiments"
    rows = {row.name for row in runpy.run_path(str(experiments / "lab_positions.py"))["ROWS"]}
    found = lab.codes()
    assert {*found} - {"sinusoids"} <= rows
    np.testing.assert_allclose(found["sinusoids"], encodings(lab.LENGTH, lab.CODE_WIDTH), atol=1e-5)
    lab.draw_codes(tmp_path)
    cells = {(cell["code"], int(cell["p - p'"])): float(cell["p . p'"]) for cell in numbers(tmp_path, "position_codes")}
    assert cells["sinusoids", 0] == pytest.approx(lab.CODE_WIDTH / 2)  # sin^2 + cos^2, a pair of dimensions each
    assert cells["sinusoids", -5] == pytest.approx(cells["sinusoids", 5])  # it asks for the distance alone
    assert [cells["one-hot", gap] for gap in (-1, 0, 1)] == [0, 1, 0]
    assert cells["scalar", 10] == pytest.approx(lab.FROM * (lab.FROM + 10) / 128**2)
