"""What LaTeX says of files that are put into an article."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

FAULT = re.compile(r"!|Overfull|Missing character|LaTeX Warning: (?:Float too large|Label .* multiply)")


def faults(files: Iterable[Path], folder: Path, package: str = "") -> list[str]:
    """Lines of the log, each with its file: errors, what is wider or taller than the page, letters and labels.

    Skips the test where LaTeX or the package is absent.
    """
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex, which is absent.")
    if package and subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode:
        pytest.skip(f"needs {package}.sty, which is absent.")
    told = (rf"\typeout{{=== {file.parent.name}/{file.name}}}\input{{{file.resolve()}}}\clearpage" for file in files)
    loaded = rf"\usepackage{{{package}}}" if package else ""
    lines = [rf"\documentclass{{article}}{loaded}\begin{{document}}Here.", *told, r"\end{document}"]
    (folder / "article.tex").write_text("\n".join(lines), "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "article.tex"]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "article.log").read_text("latin-1").split("=== ")[1:]
    return [f"{part.split()[0]}: {line}" for part in log for line in part.split("\n") if FAULT.match(line)]
