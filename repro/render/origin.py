"""What a generated page says of its origin: the command that made it, which is how to make it again."""

COMMAND = "python -m repro report"


def made_from(sources: str) -> str:
    """The first line of a page that nobody may edit."""
    return f"Made by `{COMMAND}` from {sources}; do not edit."


def is_generated(text: str) -> bool:
    """Whether a page as it stands says that it was made so: no work of anybody is lost with it."""
    return text.startswith(f"<!-- Made by `{COMMAND}` from ")
