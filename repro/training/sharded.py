"""`--strategy fsdp`: weights, gradients and moments of a model shared out among the processes (FSDP2, `fully_shard`).

Each process keeps its part of every matrix, and has a whole layer only while it computes with it: for a model whose
moments do not fit on one device. Checkpoints are those of DDP, whole and in one file, so either can go on from them.
"""

from collections.abc import Mapping
from typing import Any

import lightning as L
from lightning.pytorch.core.optimizer import LightningOptimizer
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

STEPS = ("training_step", "validation_step", "test_step")  # what stands for `forward`


class ShardedStrategy(DDPStrategy):
    """DDP's processes, each with a part of the module instead of a copy."""

    def setup(self, trainer: L.Trainer) -> None:
        """Share the module out before it is trained; afterwards it stays so."""
        if trainer.state.fn == TrainerFn.FITTING:
            super().setup(trainer)
            return
        assert self.accelerator is not None
        self.accelerator.setup(trainer)
        self.setup_precision_plugin()

    def model_to_device(self) -> None:
        """Leave it where it is: layer by layer it goes to the device, and only a part of it stays there."""

    def configure_ddp(self) -> None:
        """Share it out."""
        assert self.model is not None
        shard(self.model)
        self.model.to(self.root_device)

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """Whole in the first process, which writes it; the others have room for their part alone."""
        assert self.lightning_module is not None
        state: dict[str, Any] = whole(self.lightning_module.state_dict(), keep=self.is_global_zero)
        return state

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Whole in the first process."""
        inner = optimizer._optimizer if isinstance(optimizer, LightningOptimizer) else optimizer
        state: dict[str, Any] = whole(inner.state_dict(), keep=self.is_global_zero)
        return state

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Take of whole moments what belongs to this process."""
        for optimizer, saved in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            state = {
                i: {name: part(value, parameters[i]) for name, value in moments.items()}
                for i, moments in saved["state"].items()
            }
            optimizer.load_state_dict({**saved, "state": state})


def shard(module: nn.Module) -> None:
    """Give each process its part of every parameter: layers one by one, and what is left together."""
    layers = [layer for stack in _stacks(module) for layer in stack]
    for one in (*layers, module):
        fully_shard(one, reshard_after_forward=True)
        assert isinstance(one, FSDPModule)
        one.set_force_sum_reduction_for_comms(True)  # gloo cannot average
    for name in STEPS:
        register_fsdp_forward_method(module, name)


def _stacks(module: nn.Module) -> list[nn.ModuleList]:
    """The outermost lists of layers."""
    found = []
    for child in module.children():
        found += [child] if isinstance(child, nn.ModuleList) else _stacks(child)
    return found


def whole(value: Any, *, keep: bool) -> Any:
    """Nested plain values and tensors with every tensor whole; all processes ask together, and some `keep` nothing.

    Those have None where a shared tensor was.
    """
    if isinstance(value, DTensor):
        full = value.full_tensor()
        return full.cpu() if keep else None
    if isinstance(value, Mapping):
        return {key: whole(item, keep=keep) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(whole(item, keep=keep) for item in value)
    return value


def part(value: Any, like: Tensor) -> Any:
    """What this process keeps of a whole tensor: as much as it has of the parameter; anything else as it is."""
    if isinstance(like, DTensor) and isinstance(value, Tensor) and value.shape == like.shape:
        return distribute_tensor(value.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
    return value
