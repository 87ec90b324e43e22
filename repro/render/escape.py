"""Text that came from anywhere, shown as text: nothing in it is a command to whatever shows it."""

import re

NO_BREAK = "\N{NO-BREAK SPACE}"
SPELT = {  # in ASCII, for a console that has no more
    "±": "+-", "−": "-", "–": "-", "—": "-", "─": "-", "×": "x", "·": "*", "…": "...", "√": "sqrt", "Δ": "d", "ε": "e",
    "✓": "+", "✗": "-", "“": '"', "”": '"', "’": "'",
}  # fmt: skip


def shown(text: str) -> str:
    """With what a terminal would obey written as it is called: \\x1b for ESC, also what turns the order of letters."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", lambda found: _called(found[0]), text)


def spelt(letter: str) -> str:
    """A letter in ASCII: as it is written for want of better, or as it is called."""
    return SPELT.get(letter) or _called(letter)


def _called(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def flat(text: str) -> str:
    """One line, whatever it held: a line break in a name must end neither a cell nor a comment."""
    return shown(re.sub(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]", " ", text))


def markdown_text(text: str) -> str:
    """On one line, with all escaped that Markdown or HTML would take for its own."""
    text = re.sub(r"([\\`*{}\[\]#|~$!]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z]))", r"\\\1", flat(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sheet_text(text: str) -> str:
    """As it is, unless a spreadsheet would take it for a formula: then behind an apostrophe."""
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) or text[:1] in ("\t", "\r", "\n") else text


def unbroken(text: str) -> str:
    """A number with what is its own, 62.7 ± 0.4, 1 (2) or 6 (1 exploratory), stays on one line; words may be broken."""
    is_number = re.search(r"\d", text) and not re.search(r"[^\W\d_]", re.sub(r"\(\d+ \w+\)$", "", text))
    return text.replace(" ", NO_BREAK) if is_number else text


def raised(escaped: str) -> str:
    """Escaped text of a formula with its indices below the line and its powers above: HTML, which Markdown takes."""
    tags = {"_": "sub", "^": "sup"}
    return re.sub(r"\\?([_^])(\w+)", lambda found: f"<{tags[found[1]]}>{found[2]}</{tags[found[1]]}>", escaped)
