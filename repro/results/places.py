"""Where results stand in the project: those that are published, one's own, and the experiment files that make them."""

from pathlib import Path

PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")
