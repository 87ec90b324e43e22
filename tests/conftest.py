"""What every test stands on: no network, small hypothesis examples that repeat, the real text where it is."""

import ipaddress
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before anything imports mlflow

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Stop a test that would connect to another machine. Loopback is allowed: ranks talk over it."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not is_this_machine(args[1][0]):
        raise PermissionError(f"a test tried to reach {args[1][0]}: tests run without a network.")


sys.addaudithook(refuse_network)


@pytest.fixture(scope="session")
def real_text() -> Path:
    """The folder of real text that REPRO_DATA names; without one the test is skipped."""
    folder = os.environ.get("REPRO_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real text: set REPRO_DATA to a folder that holds it.")
    return Path(folder)
