"""The search is a value: the paper's where nothing is said, refused where it could find nothing."""

import math
from typing import Any

import pytest

from repro.decoding.search import PAPER_SEARCH, SEARCHES, Search


def test_the_search_is_the_papers() -> None:
    # section 6.1: "a beam size of 4 and length penalty alpha = 0.6 ... maximum output length to input length + 50"
    assert Search() == PAPER_SEARCH == Search(4, 0.6, 50)


def test_a_record_keeps_it_under_the_names_it_always_had() -> None:
    parsing = Search(21, 0.3, 300)  # section 6.3
    assert parsing.settings == {"beam": 21, "alpha": 0.3, "extra_length": 300}
    assert Search.of(parsing.settings | {"precision": "fp32"}) == parsing
    assert str(parsing) == "beam 21, alpha 0.3, at most input + 300"
    assert Search(1, 0.0, 0).settings == {"beam": 1, "alpha": 0.0, "extra_length": 0}


def test_a_named_search_divides_by_length_and_comes_back_from_a_record() -> None:
    # Wu et al. (2021): beam 5, log p / length; ours at the same alpha: 1, 1.5, 2, 3
    other = SEARCHES["fairseq"]
    assert [other.penalty(n) for n in (1, 4, 7, 13)] == [1, 4, 7, 13]
    assert [Search(5, 1.0).penalty(n) for n in (1, 4, 7, 13)] == [1.0, 1.5, 2.0, 3.0]
    assert other.settings == {"beam": 5, "alpha": 1.0, "extra_length": 50, "offset": 0}
    assert Search.of(other.settings) == other != Search(5, 1.0)
    assert repr(other) == "LengthNormalised(beam=5, alpha=1.0, extra=50)", "a task in words tells it from the paper's"
    assert str(other) == "beam 5, alpha 1.0, at most input + 50, log p over length^alpha"


@pytest.mark.parametrize(
    "spoilt",
    [{"beam": 0}, {"alpha": -0.1}, {"alpha": math.nan}, {"alpha": math.inf}, {"alpha": 10**400}, {"extra": -1}],
)
def test_what_cannot_be_searched_is_refused_where_it_is_made(spoilt: dict[str, Any]) -> None:
    [value] = spoilt.values()
    with pytest.raises(ValueError, match="expected a beam of at least 1, an alpha that is finite") as error:
        Search(**spoilt)
    assert str(value) in str(error.value)
    assert "\n" not in str(error.value)
