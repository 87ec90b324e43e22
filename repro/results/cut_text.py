"""Sentences about text of one's own that came cut, or whose letters are spelled in two ways."""

from collections.abc import Iterator, Mapping

PIECES = {
    "@@": "pieces of words by BPE (@@)",
    "##": "word-pieces (##)",
    "\u2581": "pieces of words by sentencepiece (\u2581)",
    "</w>": "pieces of words by BPE (</w>)",
    "\uffed": "tokens of OpenNMT's tokenizer (\uffed)",
}
SAID = {name: (f"have {what}", "they are joined before a score") for name, what in PIECES.items()} | {
    "moses": (
        "have escapes or joiners of Moses (&apos;, @-@, ##AT##)",
        "its tokens are scored as multi-bleu has them, and joined to plain text for sacreBLEU",
    ),
    "escaped": ("have escapes (&amp;) although they are not cut", "each counts as three words, so undo them"),
    "apart": (
        "that end in a full stop have a blank before it",
        "the text looks tokenised and is scored as it stands, so its BLEU is not that of plain text",
    ),
}
DECOMPOSED = "nfd"


def marked(marks: Mapping[str, float]) -> Iterator[str]:
    """One for each mark that was found (`repro/data/cut_text.py`), from the shares of lines that have it."""
    for name, share in marks.items():
        side, mark, *split = name.split(" ")
        lines = f"{100 * share:.1f} % of the {side} lines"
        if mark == DECOMPOSED:
            yield (
                f"{lines} of {split[0]} spell a letter and its accent as two characters where there is one (not "
                "Unicode's NFC): the same word in both spellings is two to a model and to BLEU. Write all text in one: "
                "uconv -x any-nfc"
            )
            continue
        has, done = SAID[mark]
        yield f"{lines} of the training text {has}" + (f": {done}." if side == "target" or mark == "escaped" else ".")
