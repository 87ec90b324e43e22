"""Where results stand in the project: those that are published, one's own, and the experiment files that make them."""

from pathlib import Path

PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")
PACKAGE = Path(__file__).parents[1]


def experiment_files() -> Path:
    """The folder of the experiment files of this code: inside an installed package, beside that of a checkout."""
    installed = PACKAGE / EXPERIMENTS
    return installed if installed.is_dir() else PACKAGE.parent / EXPERIMENTS
