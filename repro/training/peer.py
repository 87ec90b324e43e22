"""One process among those that share each update, on one node or on many: plain numbers, known before torch is."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Who this process is, as whoever started all of them says."""

    launcher: str  # by its name, for messages
    number: int  # of this process among all, from 0
    processes: int  # over all nodes
    local_number: int  # among those of its node: on a GPU, which one it works on
    devices: int  # processes of each node
    node: int  # from 0
    nodes: int
    address: str  # of node 0, where all meet
    port: int
    met_already: bool  # whether the launcher holds the meeting open; else process 0 does

    @property
    def is_first(self) -> bool:
        """Whether it alone writes, decodes and scores."""
        return self.number == 0

    @property
    def environment(self) -> Mapping[str, str]:
        """The same in torchrun's words, in which Lightning looks for it."""
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
