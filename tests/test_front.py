"""What README says was found is what `docs/front.py` makes of the records, which refuses what they do not bear."""

from pathlib import Path
from typing import Any

import pytest
from benchmark_files import opened

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def front() -> Any:
    """The script as a module, which reads the records once."""
    return opened("front", "docs")


def test_the_first_page_is_what_the_records_say(front: Any) -> None:
    for file, picture_at in front.PAGES.items():
        text = file.read_text("utf-8")
        assert front.page(text, picture_at) == text, "run docs/front.py"
    assert (ROOT / "docs" / "front.svg").read_text("utf-8") == front.picture(), "run docs/front.py"


def test_the_readme_is_read_in_minutes() -> None:
    words = (ROOT / "README.md").read_text("utf-8").split()
    assert len(words) <= 1_200
    assert words.index("found") < 120, "what was found comes first"


def test_a_sentence_that_the_records_contradict_is_refused(front: Any) -> None:
    assert front.says("laptop", "table3_C/N=2", -1).startswith("−")
    assert front.says("laptop", "table3_C/N=2", -1, amount=True)[0].isdigit()
    for side in (0, 1):
        with pytest.raises(ValueError, match="README says that table3_C/N=2 at laptop"):
            front.says("laptop", "table3_C/N=2", side)
    with pytest.raises(ValueError, match="expected runs of table3_C/N=3"):
        front.says("laptop", "table3_C/N=3", -1)
    with pytest.raises(ValueError, match="README calls C30a 'undetermined' at laptop"):
        front.require("C30a", "undetermined", "laptop")


def test_a_row_is_compared_with_the_base_of_its_own_seed(front: Any) -> None:
    found = front.difference("captions-bf16", "table3_A/h=1")
    assert found.paper == pytest.approx(24.9 - 25.8)
    assert found.side == 0
    assert front.Difference(-1.0, None, None).side == 0, "below three seeds nothing is shown"


def test_two_scales_that_contradict_each_other_leave_a_claim_open(front: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = {
        "laptop": {"a": "sign as printed", "b": "undetermined", "c": "sign as printed", "d": "not judged"},
        "captions-bf16": {"a": "undetermined", "b": "undetermined", "c": "opposite sign", "d": "not judged"},
    }
    monkeypatch.setattr(front, "verdicts", at.__getitem__)
    assert front.counted() == {"sign as printed": 1, "opposite sign": 0, "undetermined": 2}


def test_a_page_without_its_marks_is_not_written(front: Any) -> None:
    with pytest.raises(ValueError, match="Put the marks back"):
        front.page("# A title", "front.svg")
