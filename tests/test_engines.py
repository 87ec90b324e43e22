"""The comparison of engines: what counts as equal, whose translation is likelier, and what the log says of it."""

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from benchmark_files import opened

from repro.decoding.search import Search

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def engines() -> ModuleType:
    return opened("engines")


def test_whose_translation_is_likelier_under_the_penalty_of_the_search(
    engines: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"ab": (-4.0, 1), "abcdefg": (-5.0, 7), "x": (-1.0, 1), "y": (-3.0, 1)}

    def scored(trained: Any, sources: list[str], targets: list[str]) -> Any:
        assert sources == ["two", "three"], "the first is equal, and nobody asks for it"
        log_probs, n_each = zip(*(known[text] for text in targets), strict=True)
        return SimpleNamespace(log_probs=log_probs, n_each=n_each)

    monkeypatch.setattr(engines, "score_sentences", scored)
    asked: Any = (None, ["one", "two", "three"], ["same", "ab", "y"], ["same", "abcdefg", "x"])
    plain = engines.compared(*asked, Search(4, 0.0))
    assert (plain["equal"], plain["of"], plain["likelier"], plain["nats"]) == (1, 3, {"ours": 1, "theirs": 1}, 2.0)
    mean = engines.compared(*asked, Search(4, 1.0))  # -4 / (6 / 6) against -5 / (12 / 6)
    assert (mean["likelier"], [one["ours_more"] for one in mean["different"]]) == (
        {"ours": 0, "theirs": 2},
        [-1.5, -2.0],
    )
    assert [one["line"] for one in mean["different"]] == [2, 3]


def test_the_log_says_what_the_record_says() -> None:
    lines = json.loads((ROOT / "benchmarks/records/engines.json").read_bytes())["lines"]
    equal = {
        (line["beam"], line["alpha"], line["engine"]): line["equal"]
        for line in ({**one, **one["search"]} for one in lines)
    }
    names = "ctranslate2", "huggingface"
    told = [f"{equal[4, alpha, names[0]]} and {equal[4, alpha, names[1]]}" for alpha in (0.0, 0.6)]
    text = " ".join((ROOT / "docs/log.md").read_bytes().decode().split())
    assert f"with a beam of 4 {told[0]} without a length penalty, {told[1]} with the paper's" in text
    assert {n for (beam, _, engine), n in equal.items() if beam == 1 or engine == "safetensors"} == {200}
    assert all(equal[4, a, "huggingface"] == equal[4, a, "huggingface, our epsilon"] for a in (0.0, 0.6))
    assert not any(line["likelier"]["theirs"] for line in lines)
