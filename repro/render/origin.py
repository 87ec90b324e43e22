"""What a generated page says of its origin: the command that made it and can make it again."""

COMMAND = "python -m repro report"


def made_from(sources: str) -> str:
    """The first line of a page that nobody may edit."""
    return f"Made by `{COMMAND}` from {sources}; do not edit."


def is_generated(text: str) -> bool:
    """Whether a page says that it was generated, so that replacing it loses nobody's work."""
    return text.startswith(f"<!-- Made by `{COMMAND}` from ")
