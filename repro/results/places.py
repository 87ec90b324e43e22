"""Where results stand in the project: those that are published, one's own, and the experiment files that make them."""

from pathlib import Path

PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")
# published folders of presets and options that there are no more: nothing that is typed today makes such runs again
RETIRED = frozenset({"laptop-20000-pairs", "laptop-5000-pairs", "captions-6000-updates"})
PACKAGE = Path(__file__).parents[1]


def experiment_files() -> Path:
    """The folder of the experiment files of this code: inside an installed package, beside that of a checkout."""
    installed = PACKAGE / EXPERIMENTS
    return installed if installed.is_dir() else PACKAGE.parent / EXPERIMENTS
