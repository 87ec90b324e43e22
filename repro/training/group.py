"""The processes that share each update of a run, on one node or on many: how they meet, and what they share.

Only the first sees the run's folder. What the others have to know it tells them: which checkpoint to go on from and
what is in it, and how a run ended. So nodes need no folder in common.
"""

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import torch
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from torch import Tensor, distributed
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from repro.training import talk
from repro.training.checkpoint import parted, rejoined
from repro.training.peer import Peer
from repro.training.talk import AGAIN, LOOK, REASON, OthersGone, Talk, first_line

# what PyTorch's ways to send say when the other end has gone: gloo raises RuntimeError whatever it was
SIGNS = ("gloo/transport", "Connection closed by peer", "Connection reset", "Timed out waiting", "NCCL")


class Group:
    """This process among the others. Use as a context: it tells them why it ends."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.environment = peer, Environment(peer)

    @property
    def is_first(self) -> bool:
        """Whether it alone writes, decodes and scores."""
        return self.peer.is_first

    def __enter__(self) -> Self:
        """Meet the others, all of them. Raises OthersGone."""
        peer, on_gpu, patience = self.peer, torch.cuda.is_available(), talk.PATIENCE
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        if on_gpu:
            torch.cuda.set_device(peer.local_number)
        try:
            store = TCPStore(
                peer.address,
                peer.port,
                is_master=peer.is_first and not peer.met_already,
                timeout=patience,
                wait_for_workers=False,
            )
            distributed.init_process_group(
                "nccl" if on_gpu else "gloo",
                store=PrefixStore(f"sums {attempt}", store),
                rank=peer.number,
                world_size=peer.processes,
                timeout=patience,
                device_id=torch.device("cuda", peer.local_number) if on_gpu else None,
            )
        except RuntimeError as error:
            raise OthersGone(
                f"{str(peer).capitalize()} did not meet the others at {peer.address}, port {peer.port}, "
                f"within {patience.total_seconds():.0f} s ({first_line(error)}). Start them all, by the same command; "
                "where the port is taken, name another: MASTER_PORT (srun), --master-port (torchrun)."
            ) from error
        self.talk = Talk(peer, PrefixStore(f"words {attempt}", store))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.talk.close(error)
        if error is None:
            distributed.destroy_process_group()

    def told(self, word: Any, should_stop: Callable[[], bool] = lambda: False) -> Any:
        """The word of the first process, in each of them: plain values (`Talk.told`)."""
        return self.talk.told(word, should_stop)

    def shared(self, load: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A checkpoint's state, nested plain values and tensors, that the first process loads, in each of them.

        Tensors go one at a time; the rest as JSON.
        """
        tensors: dict[str, Tensor] = {}
        plain = parted(load(), tensors) if self.is_first else None
        kinds = {name: (str(x.dtype).removeprefix("torch."), list(x.shape)) for name, x in tensors.items()}
        plain, kinds = self.told([plain, kinds])
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        for name, (dtype, shape) in kinds.items():
            own = tensors[name] if self.is_first else torch.empty(shape, dtype=getattr(torch, dtype))
            there = own.to(device).contiguous()
            distributed.broadcast(there, src=0)
            tensors[name] = there.cpu()
        whole: dict[str, Any] = rejoined(plain, tensors)
        return whole

    def explained(self, error: Exception) -> OthersGone | None:
        """What an error means that others may have caused: the words of the one that failed; None for its own error."""
        if not isinstance(error, distributed.DistError) and not any(sign in str(error) for sign in SIGNS):
            return None
        until = time.monotonic() + REASON
        try:
            while time.monotonic() < until:
                self.talk.raise_failed()
                time.sleep(LOOK)
        except OthersGone as gone:
            return gone
        return OthersGone(
            f"{str(self.peer).capitalize()} lost the others in the middle of a step ({first_line(error)}). {AGAIN}"
        )


class Environment(ClusterEnvironment):
    """A peer for Lightning, which would look for launchers of its own and, under Slurm, resubmit jobs."""

    creates_processes_externally = True

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer = peer

    @staticmethod
    def detect() -> bool:
        return False

    @property
    def main_address(self) -> str:
        return self.peer.address

    @property
    def main_port(self) -> int:
        return self.peer.port

    def world_size(self) -> int:
        return self.peer.processes

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return self.peer.number

    def set_global_rank(self, rank: int) -> None:
        pass  # Lightning counts node by node; srun may deal processes out to the nodes in turn

    def local_rank(self) -> int:
        return self.peer.local_number

    def node_rank(self) -> int:
        return self.peer.node
