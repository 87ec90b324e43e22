"""The processes that share each update of a run, on one node or many, and what the first one tells the others.

Lightning treats them as processes of torchrun, whatever started them. Only the first sees the run's folder. It tells
the others what they need: which checkpoint to resume from, what is in it, and how a run ended. So the nodes need no
shared folder. If a process is lost, PyTorch or the launcher ends the rest.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import torch
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from torch import Tensor, distributed
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from repro.training.checkpoint import parted, rejoined
from repro.training.run_spec import Peer

PATIENCE = timedelta(seconds=120)  # how long a process waits for the others in a step: all have equal work
DECODING = timedelta(days=30)  # how long the others wait for a message of the first, which may decode for hours
LOOK = 0.05  # seconds between two checks for a message


class Group:
    """The group of processes, as this process sees it. Use as a context."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.environment = peer, TorchElasticEnvironment()
        self._before: dict[str, str | None] = {}  # earlier values of environment variables

    @property
    def is_first(self) -> bool:
        """Whether this is the first process, the only one that writes, decodes and scores."""
        return self.peer.is_first

    def __enter__(self) -> Self:
        """Connect to all the others. Raises ConnectionError."""
        peer, on_gpu = self.peer, torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(peer.local_number)
        self._before = {name: os.environ.get(name) for name in peer.environment}
        os.environ.update(peer.environment)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # torchrun uses one store for all attempts
        try:
            is_master = peer.is_first and not peer.met_already
            store = TCPStore(peer.address, peer.port, is_master=is_master, timeout=PATIENCE, wait_for_workers=False)
            distributed.init_process_group(
                "nccl" if on_gpu else "gloo",
                store=PrefixStore(f"attempt {attempt}", store),
                rank=peer.number,
                world_size=peer.processes,
                timeout=PATIENCE,
                device_id=torch.device("cuda", peer.local_number) if on_gpu else None,
            )
            self._words = distributed.new_group(backend="gloo", timeout=DECODING)
        except RuntimeError as error:
            raise ConnectionError(
                f"{str(peer).capitalize()} did not meet the others at {peer.address}, port {peer.port}: "
                f"{str(error).partition(chr(10))[0]}. Start them all, by the same command; where the port is taken, "
                "name another: MASTER_PORT (srun), --master-port (torchrun)."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:  # after an error the others notice that this process has gone
            distributed.destroy_process_group()
        for name, value in self._before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})

    def told(self, word: Any, should_stop: Callable[[], bool] = lambda: False) -> Any:
        """Send the plain value `word` of the first process to all, and return it. The others wait for it.

        Raises InterruptedError in a process that should stop.
        """
        content = torch.frombuffer(bytearray(json.dumps(word).encode()), dtype=torch.uint8)
        size = self._broadcast(torch.tensor(len(content)), should_stop)
        content = content if self.is_first else torch.empty(int(size), dtype=torch.uint8)
        return json.loads(self._broadcast(content, should_stop).numpy().tobytes())

    def _broadcast(self, own: Tensor, should_stop: Callable[[], bool]) -> Tensor:
        sent = distributed.broadcast(own, src=0, group=self._words, async_op=True)
        assert sent is not None
        try:
            while not sent.is_completed():
                if should_stop():
                    raise InterruptedError
                time.sleep(LOOK)
            sent.wait()
        except RuntimeError:
            if should_stop():  # the first process stopped as well, and has gone
                raise InterruptedError from None
            raise
        return own

    def shared(self, load: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Load a checkpoint's state, nested plain values and tensors, in the first process and send it to all.

        Tensors are sent one at a time, the rest as JSON.
        """
        tensors: dict[str, Tensor] = {}
        plain = parted(load(), tensors) if self.is_first else None
        kinds = {name: (str(x.dtype).removeprefix("torch."), list(x.shape)) for name, x in tensors.items()}
        plain, kinds = self.told([plain, kinds])
        for name, (dtype, shape) in kinds.items():
            own = tensors[name] if self.is_first else torch.empty(shape, dtype=getattr(torch, dtype))
            tensors[name] = self._broadcast(own.contiguous(), lambda: False)
        whole: dict[str, Any] = rejoined(plain, tensors)
        return whole
