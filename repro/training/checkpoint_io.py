"""Checkpoints in the form that Lightning's Trainer asks for; reading them without training needs none of this."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning.pytorch.plugins.io import CheckpointIO

from repro.training import checkpoint as files

NEEDED = ("state_dict", "optimizer_states", "loops", "global_step")  # keys without which Lightning cannot resume


class SafetensorsIO(CheckpointIO):
    """Saves and loads the checkpoints of one run for Lightning; `share` sends what one process has loaded to all."""

    def __init__(self, run: str, share: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]] | None = None) -> None:
        self.run, self.share = run, share or (lambda load: load())

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        files.save(Path(path), checkpoint, self.run)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        return self.share(lambda: files.load(Path(path), self.run, NEEDED))

    def remove_checkpoint(self, path: Any) -> None:
        os.unlink(path)
