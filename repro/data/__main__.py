"""The door of `python -m repro.data`."""

import sys

from repro.cli.data import main
from repro.runs.command import ended

if __name__ == "__main__":
    sys.exit(ended(main))
