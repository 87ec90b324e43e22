"""Where the project keeps results: the published ones, one's own, and the experiment files that make them."""

from pathlib import Path

PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")
# published folders whose presets or options no longer exist: no command of today makes such runs again
RETIRED = frozenset({"laptop-20000-pairs", "laptop-5000-pairs", "captions-6000-updates"})
PACKAGE = Path(__file__).parents[1]


def experiment_files() -> Path:
    """The folder of this code's experiment files: inside an installed package, or beside it in a checkout."""
    installed = PACKAGE / EXPERIMENTS
    return installed if installed.is_dir() else PACKAGE.parent / EXPERIMENTS
