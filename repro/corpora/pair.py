"""A language pair as it is written: "en-de", "en-zh-Hans", "pt-BR-en"."""

import re

LANGUAGE = re.compile(r"[a-z]{2,3}", re.ASCII)  # what begins a tag; the rest of one is longer or has capitals


def languages(pair: str) -> tuple[str, str]:
    """Source and target language. A ValueError says what is expected.

    One dash stands between the two, whatever they are called. Where there are more, a tag begins at each part of two
    or three small letters and goes on over the parts after it, as language tags do (BCP 47): "zh-Hans", "pt-BR".
    """
    parts = pair.split("-")
    starts = [0, 1] if len(parts) == 2 else [i for i, part in enumerate(parts) if LANGUAGE.fullmatch(part)]
    if not all(re.fullmatch(r"\w+", part, re.ASCII) for part in parts) or len(starts) != 2 or starts[0] != 0:
        raise ValueError(
            f"A pair is two languages like 'en-de', got {pair!r}. A tag of several parts begins with two or three "
            "small letters and has others after that: 'en-zh-Hans', 'pt-BR-en'."
        )
    source, target = "-".join(parts[: starts[1]]), "-".join(parts[starts[1] :])
    if source == target:
        raise ValueError(
            f"A pair is two different languages like 'en-de', got {pair!r}: there is nothing to translate."
        )
    return source, target
