"""The door of `python -m repro.ui`."""

import sys

from repro.cli.ui import main
from repro.runs.command import ended

if __name__ == "__main__":
    sys.exit(ended(main))
