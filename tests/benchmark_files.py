"""Files of `benchmarks/` and `docs/` as modules: they are programs and no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


def opened(name: str, folder: str = "benchmarks") -> ModuleType:
    """The file of this name, read anew; it finds the others beside it."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", ROOT / folder / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / folder))
    return module
