"""The names of checkpoint files; listing a folder of them needs no torch."""

from pathlib import Path

_NAME = "step-{:09d}.safetensors"


def path_of(folder: Path, step: int) -> Path:
    """The file of the checkpoint after optimizer step `step`."""
    return folder / _NAME.format(step)


def step_of(path: Path) -> int:
    """The optimizer step after which a checkpoint was written, from its name."""
    return int(path.stem.removeprefix("step-"))


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoint files of a run, oldest first; not yet verified."""
    return sorted(folder.glob("step-*.safetensors"))
