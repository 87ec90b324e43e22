"""The measured parts of docs/parsing.md say what the records of the benchmarks say, and nothing else."""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from benchmark_files import opened

from repro.data.shards import Encoded
from repro.decoding.search import Search
from repro.results.brackets import Brackets


@pytest.fixture(scope="module")
def parsing() -> ModuleType:
    return opened("parsing")


@pytest.fixture(scope="module")
def parse_search() -> ModuleType:
    return opened("parse_search")


def test_the_page_is_what_the_records_make(parsing: ModuleType) -> None:
    text = parsing.PAGE.read_bytes().decode()
    assert parsing.rendered(text, parsing.load()) == text, "run python benchmarks/parsing.py"
    with pytest.raises(ValueError, match="expected one mark"):
        parsing.rendered(text.replace("parsing.py: search", "parsing.py"), parsing.load())


def test_both_beams_are_searched_with_both_alphas(parse_search: ModuleType) -> None:
    found = [(one.beam, one.alpha, one.extra) for one in parse_search.searches(300)]
    assert found == [(4, 0.6, 300), (4, 0.3, 300), (21, 0.6, 300), (21, 0.3, 300)]


def test_an_output_as_long_as_its_limit_was_cut(parse_search: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Encoded(np.array([5, 6, 1, 5, 1], np.uint16), np.array([0, 3, 5]))  # 3 and 2 tokens, the end counted
    monkeypatch.setattr(parse_search, "translate", lambda model, source, search: [(7, 7, 7, 7, 7), (7, 7, 7)])
    tokenizer = SimpleNamespace(decode=lambda ids: " ".join(map(str, ids)))
    assert parse_search.parsed(None, tokenizer, source, Search(1, 0.0, 2)) == (["7 7 7 7 7", "7 7 7"], 1)


def test_times_are_taken_turn_by_turn(parse_search: ModuleType) -> None:
    ten = np.full(4, 10)
    first = Brackets(ten, ten, ten, np.array([5, 5, 5, 5]), {})
    better = Brackets(ten, ten, ten, np.array([6, 6, 6, 6]), {})
    line = parse_search.line_of(Search(21, 0.3, 300), better, first, 1, [40.0, 10.0, 30.0], [4.0, 5.0, 10.0])
    assert line["times_first"] == {"median": 3.0, "lowest": 2.0, "highest": 10.0}
    assert line["f1_more_than_first"] == pytest.approx({"value": 10.0, "low": 10.0, "high": 10.0})
    assert (line["f1"], line["at_limit"]) == (pytest.approx(60.0), 25.0)
