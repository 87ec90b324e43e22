"""What a generated page says of its origin: the command that made it, which is how to make it again."""

COMMAND = "python -m repro report"


def made_from(sources: str) -> str:
    """The first line of a page that nobody may edit."""
    return f"Made by `{COMMAND}` from {sources}; do not edit."
