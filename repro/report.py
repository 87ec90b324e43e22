"""The door of `python -m repro.report`."""

import sys

from repro.cli.report import main
from repro.runs.command import ended

if __name__ == "__main__":
    sys.exit(ended(main))
