"""A language pair as it is written: "en-de", "en-zh-Hans", "pt-BR-en"."""

import re

LANGUAGE = re.compile(r"[a-z]{2,3}", re.ASCII)  # the first part of a tag; later parts are longer or have capitals


def languages(pair: str) -> tuple[str, str]:
    """Source and target language. Raises ValueError that says what is expected.

    A single dash separates the two, whatever their names. With more dashes, each part of two or three small letters
    begins a tag, and the parts after it belong to it, as in language tags (BCP 47): "zh-Hans", "pt-BR".
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
        raise ValueError(f"A pair is two different languages like 'en-de', got {pair!r}: nothing is to be translated.")
    return source, target
