"""The manifest is complete, names nothing twice, and keeps the two forms of newstest2014 apart."""

import itertools
import re

import pytest

from repro.corpora.sources import COLLECTIONS, SOURCES, Member, Source


def members(one: Source) -> list[Member]:
    return [member for sides in one.members.values() for member in sides]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_complete(name: str) -> None:
    one = SOURCES[name]
    assert one.name == name
    assert re.fullmatch(r"[a-z0-9_]+", name)
    assert re.fullmatch(r"[a-zA-Z0-9._-]+\.(tgz|tar|tar\.gz)", one.archive)
    assert one.size_at_most > 0
    assert one.sha256 is None or re.fullmatch("[0-9a-f]{64}", one.sha256)
    assert one.md5 is None or re.fullmatch("[0-9a-f]{32}", one.md5)
    assert one.sha256 or one.md5 or all(member.sha256 for member in members(one))  # that somebody published
    assert all(re.fullmatch("[0-9a-f]{64}", member.sha256) for member in members(one) if member.sha256)
    assert one.licence
    assert one.about
    assert len(set(one.urls)) == len(one.urls)
    assert one.urls[0].startswith("https://")
    assert all(url.startswith("https://") or (url.startswith("http://") and one.sha256) for url in one.urls)
    for pair, (source_side, target_side) in one.members.items():
        assert f"{source_side.language}-{target_side.language}" == pair
        assert source_side.name != target_side.name
        assert one.n_pairs[pair] > 0
    assert not any(member.name.startswith(("/", ".")) for member in members(one))


def test_an_archive_is_described_once() -> None:
    for one, other in itertools.combinations(SOURCES.values(), 2):
        if one.archive == other.archive:
            assert (one.urls, one.size, one.sha256, one.md5) == (other.urls, other.size, other.sha256, other.md5)
            assert not {m.name for m in members(one)} & {m.name for m in members(other)}
        else:
            assert not {*one.urls, one.sha256, one.md5} & {*other.urls, other.sha256, other.md5} - {None}


@pytest.mark.parametrize("key", COLLECTIONS)
def test_a_collection_is_complete(key: str) -> None:
    one = COLLECTIONS[key]
    assert key == f"{one.name}-{one.pair}"
    assert len({part.name for part in one.sources}) == len(one.sources) == len(one.train) + 2 + len(one.further)
    assert all(one.pair in part.members for part in one.sources)
    assert one.n_train == sum(SOURCES[name].n_pairs[one.pair] for name in one.train)
    assert one.licence


def test_the_training_text_has_the_size_that_the_paper_says() -> None:
    # section 5.1: about 4.5 million pairs; 36 million are left of 40.8 by a length limit that it does not name
    assert round(COLLECTIONS["wmt14-en-de"].n_train / 1e6, 1) == 4.5
    assert round(COLLECTIONS["wmt14-en-fr"].n_train / 1e6, 1) == 40.8


def test_the_two_forms_of_newstest2014_are_two_sources() -> None:
    filtered, full = SOURCES["newstest2014"], SOURCES["newstest2014_full"]
    assert (filtered.n_pairs["en-de"], full.n_pairs["en-de"]) == (2_737, 3_003)
    assert (filtered.n_pairs["en-fr"], full.n_pairs["en-fr"]) == (3_003, 3_003)
    assert filtered.archive != full.archive
    assert not {m.name for m in members(filtered)} & {m.name for m in members(full)}
    german, french = COLLECTIONS["wmt14-en-de"], COLLECTIONS["wmt14-en-fr"]
    assert (german.test, german.further) == ("newstest2014_full", ("newstest2014",))
    assert (french.test, french.further) == ("newstest2014", ())  # the two have the same 3,003 lines
    assert all(m.name.endswith(".sgm") for m in members(filtered))
