"""The door of `python -m repro.tracking`."""

import sys

from repro.cli.tracking import main
from repro.runs.command import ended

if __name__ == "__main__":
    sys.exit(ended(main))
