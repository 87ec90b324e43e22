"""How a language pair is written."""

import pytest

from repro.corpora.pair import languages


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        ("en-de", ("en", "de")),
        ("eng-deu", ("eng", "deu")),
        ("en-zh-Hans", ("en", "zh-Hans")),
        ("zh-Hans-en", ("zh-Hans", "en")),
        ("pt-BR-pt-PT", ("pt-BR", "pt-PT")),
        ("zh-Hans-CN-zh-Hant-TW", ("zh-Hans-CN", "zh-Hant-TW")),
        ("de-1996-es-419", ("de-1996", "es-419")),
        ("source-target", ("source", "target")),  # one dash: the two may be called anything
        ("EN-x_1", ("EN", "x_1")),
    ],
)
def test_a_pair_is_two_tags(pair: str, found: tuple[str, str]) -> None:
    assert languages(pair) == found


@pytest.mark.parametrize(
    "pair",
    [
        "",
        "en",
        "en-",
        "-de",
        "en--de",
        "en-de-fr",
        "pt-br-en",
        "Hans-zh-en",
        "../x-y",
        "en-de/x",
        "en-d e",
        "en-zh\n",
        "é-de",
    ],
)
def test_anything_else_is_refused(pair: str) -> None:
    with pytest.raises(ValueError, match="A pair is two languages like 'en-de', got"):
        languages(pair)


@pytest.mark.parametrize("pair", ["en-en", "zh-Hans-zh-Hans"])
def test_a_language_is_not_translated_into_itself(pair: str) -> None:
    with pytest.raises(
        ValueError, match=f"A pair is two different languages like 'en-de', got '{pair}': there is nothing"
    ):
        languages(pair)
