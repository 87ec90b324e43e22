"""What a cluster is refused for, before any work: its address, its versions, its room."""

import socket
from pathlib import Path
from typing import Any

import pytest

from repro.runs.executors import cluster, on_node
from repro.runs.executors.cluster import Cluster, Share
from repro.storage.atomic import DiskError


def looked_at(**other: Any) -> Any:
    """A cluster of which nothing but the sentences is asked."""
    found = object.__new__(Cluster)
    found.where, found.needs_on_disk = "ray", 1_000
    vars(found).update(other)
    return found


def facts(**other: Any) -> Any:
    usual = {
        "host": "n7",
        "versions": on_node.versions(),
        "sees": ["runs", "cache"],
        "room": 10**9,
        "place": "/scratch",
    }
    return usual | other


def test_addresses() -> None:
    assert cluster._address("ray", {}) == "local"
    assert cluster._address("ray", {"RAY_ADDRESS": "auto"}) == "auto"
    for where, environment in [
        ("ray://", {}),
        ("ray://head", {}),
        ("ray://head:port", {}),
        ("ray", {"RAY_ADDRESS": "10.0.0.7"}),
    ]:
        with pytest.raises(ValueError, match="expected ray, or ray://HOST:PORT"):
            cluster._address(where, environment)


def test_who_answers_is_asked_and_who_does_not_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert cluster._address(f"ray://{address}", {}) == f"ray://{address}"
        assert cluster._address("ray", {"RAY_ADDRESS": address}) == address
    with pytest.raises(ValueError, match=f"nobody answers at {address}"):
        cluster._address(f"ray://{address}", {})


@pytest.mark.parametrize("name", ["python", "ray", "torch", "lightning", "numpy"])
def test_a_node_of_other_versions_is_refused_with_both(name: str) -> None:
    versions = on_node.versions()
    there = facts(versions={**versions, name: "none"})
    with pytest.raises(ValueError, match=f"node n7 has other versions: {name} none there, {versions[name]} here"):
        looked_at().refuse(there)
    looked_at().refuse(facts())


def test_a_node_without_room_is_refused_where_it_keeps_runs() -> None:
    looked_at().refuse(facts(room=1))  # its runs are the driver's
    looked_at().refuse(facts(room=None, sees=[]))
    with pytest.raises(DiskError, match="node n7 has 0 kB free in /scratch, where a run takes 1 kB"):
        looked_at().refuse(facts(room=1, sees=["cache"]))


def test_how_many_runs_a_node_takes() -> None:
    needs = Share(processors=2, memory=10**9)
    node = {"CPU": 7.0, "memory": 2.5e9, "GPU": 1.0}
    assert [needs.fit(node, gpus) for gpus in (0, 1, 2)] == [2, 1, 0]
    assert needs.fit({"memory": 1e12}, 0) == 0


def test_a_node_tells_what_it_sees(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"token of " + name.encode())
    tokens = {name: on_node.token(tmp_path / name) for name in ("a", "b")} | {"c": (str(tmp_path / "c"), "0")}
    (tmp_path / "b").write_bytes(b"another's")
    assert on_node.node_facts(tokens)["sees"] == ["a"]


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_node._own(tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with pytest.raises(ValueError, match="belongs to another user"):
        on_node._own(tmp_path / "mine")
