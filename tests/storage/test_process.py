"""Whether a process is dead is said only where it can be told."""

import os

import pytest
from waiting import ended_process

from repro.storage import process
from repro.storage.process import has_ended, is_dead, this_process


def test_an_ended_process_of_this_machine_is_dead_and_of_another_none_is() -> None:
    ended = this_process() | {"pid": ended_process()}
    assert is_dead(ended)
    assert not is_dead(ended | {"host": "elsewhere"})
    assert not is_dead({})
    assert not is_dead(this_process())
    if this_process()["began"] is not None:  # this system tells
        assert is_dead(this_process() | {"began": "7"}), "another process has its number now"


def test_a_zombie_is_dead() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    state, began = process._stated(child)
    try:
        assert state in ("Z", None)  # None: this system does not tell
        assert has_ended(child) == has_ended(child, began) == (state == "Z")
    finally:
        os.waitpid(child, 0)
    assert has_ended(child)


def test_a_process_whose_state_is_hidden_may_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other users a system may show nothing (`hidepid`), but that they are there."""

    def not_yours(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(process, "_stated", lambda pid: (None, None))
    assert not has_ended(os.getpid(), "7")
    monkeypatch.setattr(os, "kill", not_yours)
    assert not has_ended(2, "7")
