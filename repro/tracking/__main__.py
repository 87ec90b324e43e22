"""The door of before: `python -m repro.tracking` is `python -m repro tracking` now."""

from repro.cli.commands import long_form

if __name__ == "__main__":
    long_form("tracking")
