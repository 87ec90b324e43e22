"""A command as it is typed."""

from typing import Any

from repro.cli.commands import main


def typed(capsys: Any, *words: object, code: int = 0) -> str:
    """All that a command says, what is asked for and then its errors; it has to end with this code."""
    capsys.readouterr()
    try:
        ended = main([*map(str, words)])
    except SystemExit as stopped:  # of the parser
        ended = int(stopped.code or 0)
    out, errors = capsys.readouterr()
    assert ended == code, out + errors
    return str(out + errors)
