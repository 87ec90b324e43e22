"""What pyproject.toml cannot say: a built package has experiments and trained models, and knows its commit.

Without git, as in an installed wheel, that is how a run knows whether its code is anybody's
(`repro/results/provenance.py`). Its description is README.md, whose links would lead nowhere on the page of an index.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!https?://|mailto:|#)([^)\s]+)\)")  # to a file of the repository


def description(readme: str, source: str | None, version: str) -> str:
    """README.md for the page of an index: links lead to the release in the repository at the address `source`.

    Where pyproject.toml has no such address, a link becomes its text and the name of the file.
    """
    place = "HEAD" if "dev" in version else f"v{version}"  # its tag

    def led(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        if source:
            return f"{picture}[{text}]({source.rstrip('/')}/{'raw' if picture else 'blob'}/{place}/{target})"
        file = target.partition("#")[0]
        return text if text.strip("`") == file else f"{text} (`{file}`)"

    return LINK.sub(led, readme)


def write_release(package: Path, version: str) -> None:
    """Leave `release.json` in a package that is made; code that no commit has is no release."""
    sys.path.insert(0, str(ROOT))
    from repro.results import provenance  # of the standard library alone: nothing is installed where a wheel is built

    commit, why_dirty = provenance.committed()
    if why_dirty is None:
        release = {"version": version, "commit": commit, "fingerprint": provenance.fingerprint()}
        (package / provenance.RELEASE).write_text(json.dumps(release), "utf-8")


class BuildPackage(build_py):
    """Modules, the experiment files, trained models, and where they come from."""

    def run(self) -> None:
        """Copy the modules; a package that is edited where it lies has git and the others beside it."""
        super().run()
        if not self.editable_mode:
            package = Path(self.build_lib) / "repro"
            for file in sorted([*ROOT.glob("experiments/*.py"), *ROOT.glob("pretrained/*/*")]):
                place = package / file.relative_to(ROOT)
                self.mkpath(str(place.parent))
                self.copy_file(str(file), str(place))
            write_release(package, self.distribution.get_version())


class SourceDistribution(sdist):
    """The sources, which leave git behind as well."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the sources."""
        super().make_release_tree(base_dir, files)
        write_release(Path(base_dir) / "repro", self.distribution.get_version())


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = description(
        (ROOT / "README.md").read_text("utf-8"), project.get("urls", {}).get("Source"), project["version"]
    )
    setup(
        cmdclass={"build_py": BuildPackage, "sdist": SourceDistribution},
        long_description=page,
        long_description_content_type="text/markdown",
    )
