"""Where training goes on from a checkpoint of Lightning's, which it may write at any moment of a step.

Slurm's signal, Ctrl-C and an exception have Lightning save at once: inside the backward pass, between two
micro-batches, or when the optimizer has moved the weights and nobody has counted it yet. An update that was begun is
lost with its gradient, so training goes on after the last whole one.
"""

from collections.abc import Mapping
from typing import Any

FREE = ("steps", "average", "average_every")  # of a row: how long it trains, which decides no update


def after_whole_update(checkpoint: dict[str, Any], accumulate: int, data: str) -> None:
    """Set the counters of a checkpoint to the end of its last whole update, of `accumulate` micro-batches.

    Lightning's counters of this epoch go back to the last finished batch by themselves, that of all epochs does not.
    `data` is the key of the data module's state.
    """
    loop = checkpoint["loops"]["fit_loop"]
    progress = loop["epoch_loop.batch_progress"]
    counted = loop["epoch_loop.automatic_optimization.optim_progress"]["optimizer"]["step"]["total"]
    if _steps_of_optimizer(checkpoint) == {counted["completed"] + 1}:  # the weights have moved, which it counts next
        counted["completed"] += 1
    n_updates = counted["completed"]
    too_many = progress["total"]["processed"] - n_updates * accumulate
    if progress["total"]["ready"] == progress["total"]["processed"] and not too_many:
        return
    for batches in (progress["total"], progress["current"]):
        done = batches["processed"] - too_many
        # as Lightning writes it when a batch has ended
        batches |= {"ready": done, "started": done, "processed": done, "completed": done - 1}
    progress["is_last_batch"] &= too_many < 0  # else the batch that it is told of is read again
    loop["epoch_loop.state_dict"]["_batches_that_stepped"] = n_updates - 1
    state = checkpoint.get(data, {})
    if "at" in state:
        state["at"] = [state["at"][0], progress["current"]["ready"]]


def refuse_another(saved: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise ValueError where a checkpoint is of a module of other settings: each update would be another one."""
    there, here = (_flat(one) for one in (saved, own))
    different = [
        f"{name} {there[name]!r} there, {here[name]!r} here"
        for name in here
        if name in there and there[name] != here[name] and name not in FREE
    ]
    if different:
        raise ValueError(
            f"The checkpoint is of another module: {'; '.join(different)}. Go on with those; or begin anew with its "
            "weights: fit(TranslationModule.load_from_checkpoint(path), data) without ckpt_path."
        )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Seed, system and size of the vocabulary beside the fields of the row."""
    own = {name: settings[name] for name in ("seed", "vocab_size", "system") if name in settings}
    return own | dict(settings.get("hyper", {}))


def _steps_of_optimizer(checkpoint: dict[str, Any]) -> set[int]:
    """How many updates Adam has made of each parameter, as it has counted itself."""
    moments = (state for optimizer in checkpoint.get("optimizer_states", []) for state in optimizer["state"].values())
    return {int(state["step"]) for state in moments if "step" in state}
