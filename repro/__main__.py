"""The door of `python -m repro`."""

from repro.cli.commands import console

if __name__ == "__main__":
    console()
