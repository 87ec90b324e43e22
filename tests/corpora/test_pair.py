"""How a language pair is written."""

import pytest

from repro.corpora.pair import languages


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        ("en-de", ("en", "de")),
        ("en-zh-Hans", ("en", "zh-Hans")),
        ("zh-Hans-en", ("zh-Hans", "en")),
        ("pt-BR-pt-PT", ("pt-BR", "pt-PT")),
        ("zh-Hans-CN-zh-Hant-TW", ("zh-Hans-CN", "zh-Hant-TW")),
        ("de-1996-es-419", ("de-1996", "es-419")),
        ("source-target", ("source", "target")),  # one dash: the two may be called anything
    ],
)
def test_a_pair_is_two_tags(pair: str, found: tuple[str, str]) -> None:
    assert languages(pair) == found


@pytest.mark.parametrize("pair", ["en", "en-", "en--de", "en-de-fr", "Hans-zh-en", "../x-y", "en-zh\n", "é-de"])
def test_anything_else_is_refused(pair: str) -> None:
    with pytest.raises(ValueError, match="A pair is two languages like 'en-de', got"):
        languages(pair)
    with pytest.raises(ValueError, match="A pair is two different languages like 'en-de', got 'zh-Hans-zh-Hans'"):
        languages("zh-Hans-zh-Hans")
