"""The door of `python -m repro.decoding`."""

import sys

from repro.cli.decode import main
from repro.runs.command import ended

if __name__ == "__main__":
    sys.exit(ended(main))
