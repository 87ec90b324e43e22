"""The door of before: `python -m repro.report` is `python -m repro report` now."""

from repro.cli.commands import long_form

if __name__ == "__main__":
    long_form("report")
