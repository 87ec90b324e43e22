"""What pyproject.toml cannot say: a built package has the experiment files, and knows the commit it was built from.

Without git, as in an installed wheel, that is how a run knows whether its code is anybody's
(`repro/results/provenance.py`).
"""

import json
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent


def write_release(package: Path, version: str) -> None:
    """Leave `release.json` in a package that is made; code that no commit has is no release."""
    sys.path.insert(0, str(ROOT))
    from repro.results import provenance

    origin = provenance.provenance()
    if not origin["dirty"]:
        release = {"version": version, "commit": origin["commit"], "fingerprint": origin["fingerprint"]}
        (package / provenance.RELEASE).write_text(json.dumps(release), "utf-8")


class BuildPackage(build_py):
    """Modules, the experiment files, and where they come from."""

    def run(self) -> None:
        """Copy the modules; a package that is edited where it lies has git and experiments beside it."""
        super().run()
        if not self.editable_mode:
            package = Path(self.build_lib) / "repro"
            self.mkpath(str(package / "experiments"))
            for file in sorted((ROOT / "experiments").glob("*.py")):
                self.copy_file(str(file), str(package / "experiments" / file.name))
            write_release(package, self.distribution.get_version())


class SourceDistribution(sdist):
    """The sources, which leave git behind as well."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the sources."""
        super().make_release_tree(base_dir, files)
        write_release(Path(base_dir) / "repro", self.distribution.get_version())


setup(cmdclass={"build_py": BuildPackage, "sdist": SourceDistribution})
