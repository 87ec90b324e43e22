"""Let several tox environments live in one folder, so that torch is installed once and not four times.

tox builds a folder anew whenever it was last used under another name. Environments with `runner = shared`
ask for the same packages, so the name is left out of the comparison; the interpreter and the requirements
are compared as ever.
"""

from contextlib import AbstractContextManager
from typing import Any

from tox.plugin import impl
from tox.tox_env.api import ToxEnv
from tox.tox_env.info import Info
from tox.tox_env.python.virtual_env.runner import VirtualEnvRunner
from tox.tox_env.register import ToxEnvRegister


class NamelessInfo(Info):
    """What tox remembers of a folder, less the name of the environment that made it."""

    def compare(
        self, value: Any, section: str, sub_section: str | None = None
    ) -> AbstractContextManager[tuple[bool, Any | None]]:
        """Compare as tox does, under one name for all."""
        if section == ToxEnv.__name__:
            value = {**value, "name": "shared"}
        return super().compare(value, section, sub_section)


class SharedRunner(VirtualEnvRunner):
    """A virtual environment that others may use as well."""

    @staticmethod
    def id() -> str:
        """Return what `runner =` in tox.ini names."""
        return "shared"

    @property
    def cache(self) -> Info:
        """Return what tox remembers of the folder."""
        return NamelessInfo(self.env_dir)


@impl
def tox_register_tox_env(register: ToxEnvRegister) -> None:
    """Make the runner known to tox."""
    register.add_run_env(SharedRunner)
