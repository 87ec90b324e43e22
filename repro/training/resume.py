"""Where training resumes from one of Lightning's checkpoints, which may be written at any moment of a step.

On Slurm's signal, Ctrl-C or an exception, Lightning saves at once: inside the backward pass, between two
micro-batches, or after the optimizer has changed the weights but before the step is counted. An unfinished update is
lost with its gradient, so training resumes after the last whole one.
"""

from collections.abc import Mapping
from typing import Any

FREE = ("steps", "average", "average_every")  # fields that may differ: how long to train changes no update


def after_whole_update(checkpoint: dict[str, Any], accumulate: int, data: str) -> None:
    """Set the counters of a checkpoint to the end of its last whole update of `accumulate` micro-batches.

    Lightning resets its counters of this epoch to the last finished batch, but not its counter of all epochs.
    `data` is the key of the data module's state.
    """
    loop = checkpoint["loops"]["fit_loop"]
    progress = loop["epoch_loop.batch_progress"]
    counted = loop["epoch_loop.automatic_optimization.optim_progress"]["optimizer"]["step"]["total"]
    if _steps_of_optimizer(checkpoint) == {counted["completed"] + 1}:  # the weights changed, but it is not yet counted
        counted["completed"] += 1
    n_updates = counted["completed"]
    too_many = progress["total"]["processed"] - n_updates * accumulate
    if progress["total"]["ready"] == progress["total"]["processed"] and not too_many:
        return
    for batches in (progress["total"], progress["current"]):
        done = batches["processed"] - too_many
        # as Lightning writes it when a batch has ended
        batches |= {"ready": done, "started": done, "processed": done, "completed": done - 1}
    progress["is_last_batch"] &= too_many < 0  # else the batch that the flag belongs to is read again
    loop["epoch_loop.state_dict"]["_batches_that_stepped"] = n_updates - 1
    state = checkpoint.get(data, {})
    if "at" in state:
        state["at"] = [state["at"][0], progress["current"]["ready"]]


def refuse_another(saved: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise ValueError if a checkpoint is of a module with other settings, with which every update would differ."""
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
    """Seed, vocabulary size, system and the fields of the row in one dictionary."""
    own = {name: settings[name] for name in ("seed", "vocab_size", "system") if name in settings}
    return own | dict(settings.get("hyper", {}))


def _steps_of_optimizer(checkpoint: dict[str, Any]) -> set[int]:
    """The numbers of updates that Adam has counted for its parameters."""
    moments = (state for optimizer in checkpoint.get("optimizer_states", []) for state in optimizer["state"].values())
    return {int(state["step"]) for state in moments if "step" in state}
