"""One of the processes that share each update, on one node or many: plain numbers, known before torch is imported."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Peer:
    """This process's place among all, as told by the launcher that started them."""

    launcher: str  # its name, for messages
    number: int  # of this process among all, from 0
    processes: int  # over all nodes
    local_number: int  # of this process within its node; also the number of its GPU
    devices: int  # processes of each node
    node: int  # from 0
    nodes: int
    address: str  # of node 0, where all processes connect
    port: int
    met_already: bool  # whether the launcher runs the store where they meet; else process 0 does

    @property
    def is_first(self) -> bool:
        """Whether this is the first process, the only one that writes, decodes and scores."""
        return self.number == 0

    @property
    def environment(self) -> Mapping[str, str]:
        """The same as torchrun's environment variables, which Lightning reads."""
        said = {
            "RANK": self.number,
            "WORLD_SIZE": self.processes,
            "LOCAL_RANK": self.local_number,
            "GROUP_RANK": self.node,
            "MASTER_ADDR": self.address,
            "MASTER_PORT": self.port,
        }
        return {name: str(value) for name, value in said.items()}

    def __str__(self) -> str:
        where = f" on node {self.node}" if self.nodes > 1 else ""
        return f"process {self.number} of {self.processes}{where}"
