"""The lists of claims that there were: a claim that comes later voids no run, and no list can be made up."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from repro.claims import lists as module
from repro.claims.catalogue import CLAIMS, LISTED
from repro.claims.claim import BLEU
from repro.claims.lists import catalogue_digest, claim_digest, held, lists, note


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    lists.cache_clear()
    yield
    lists.cache_clear()


def test_the_list_of_today_is_noted() -> None:
    noted = json.loads(module.FILE.read_bytes())
    assert catalogue_digest() in noted, "before any run under it, type: python -m repro.claims.lists"


def test_a_list_holds_its_claims_as_they_were() -> None:
    first = CLAIMS[0]
    assert all(held(catalogue_digest(), one) for one in LISTED)
    assert held(catalogue_digest(), replace(first, says="in other words"))
    assert not held(catalogue_digest(), replace(first, endpoints=(replace(BLEU, margin=7.0),)))
    assert not held("0" * 16, first)
    assert not held(None, first)


def test_an_older_list_stays_beside_that_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE", tmp_path / "lists.json")
    module.FILE.write_text("{}")
    older = note(CLAIMS[1:])
    assert {*lists()} == {older, catalogue_digest()}
    assert not held(older, CLAIMS[0])
    assert held(older, CLAIMS[1])
    assert note() == catalogue_digest()
    assert {*json.loads(module.FILE.read_bytes())} == {older, catalogue_digest()}


def test_a_list_that_was_edited_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE", tmp_path / "lists.json")
    module.FILE.write_text(json.dumps({"a" * 16: [claim_digest(claim) for claim in CLAIMS]}))
    with pytest.raises(ValueError, match="does not hold the claims it should"):
        lists()
