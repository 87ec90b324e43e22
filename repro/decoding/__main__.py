"""The door of before: `python -m repro.decoding translate` is `python -m repro translate` now."""

from repro.cli.commands import long_form

if __name__ == "__main__":
    long_form("decoding")
