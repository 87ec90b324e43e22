"""The door of before: `python -m repro.ui` is `python -m repro ui` now."""

from repro.cli.commands import long_form

if __name__ == "__main__":
    long_form("ui")
