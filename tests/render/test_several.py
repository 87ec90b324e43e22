"""One is not many."""

from repro.render.several import several


def test_one_is_one_and_none_are_many() -> None:
    assert [several(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
