"""The door of before: `python -m repro.data` is `python -m repro data` now."""

from repro.cli.commands import long_form

if __name__ == "__main__":
    long_form("data")
