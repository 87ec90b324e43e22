"""Do two commits make the same numbers to the last digit? If so, their codes count as one from then on.

Runs one seed under the code of both commits, each from a folder of its own with one thread, and compares scores,
curves, translations, the order of the batches and every weight of the last checkpoint. Equal code joins its class in
`repro/results/equal_code.json`, with the run that showed it.

Run:  python benchmarks/equal_code.py 70d1d4c HEAD          (under a minute on 1 core; the older commit first)
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from repro.results.equal_code import LIST
from repro.results.task import LATER_SCORES
from repro.storage.atomic import write_text

ROOT = Path(__file__).parent.parent
CODE = ("fingerprint", "system", "task")  # fields of an outcome that say what made it
# prints for the system of each row its own digest and that of all its code
ROWS = """
import json, runpy
from pathlib import Path
from repro.results.provenance import _parts, fingerprint
rows = [row for file in Path("experiments").glob("*.py") for row in runpy.run_path(str(file)).get("ROWS", [])]
print(json.dumps([[_parts(row.system)["system_fingerprint"], fingerprint(row.system)] for row in rows if row.system]))
"""
SEED: dict[str, Any] = {"scale": "smoke", "table": "table3_A", "row": "base", "seed": 1}


def git(*arguments: str) -> bytes:
    """What git prints of this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def unpack(commit: str, folder: Path) -> Path:
    """Write the code of a commit to `folder`."""
    with tarfile.open(fileobj=BytesIO(git("archive", commit, "repro", "experiments"))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def outcome(code: Path, run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The results of a seed under the code in `code`, without times; it runs in `folder`."""
    options = {
        "scale": run["scale"],
        "rows": run["row"],
        "seeds": str(run["seed"]),
        "runs-dir": str(folder / "runs"),
        "results-dir": str(folder / "results"),
        "cache-dir": str(folder / "cache"),
        "tracking-uri": f"sqlite:///{folder}/mlflow.db",
    }
    command = [sys.executable, f"experiments/{run['table']}.py"]
    command += [word for name, value in options.items() for word in (f"--{name}", value)]
    environment = {**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(command, cwd=code, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} in {code} ended with {done.returncode}:\n{done.stderr[-2_000:]}")
    [work] = {path.parent for path in folder.glob("runs/*/record.json") if is_of(path, run)}
    record = told(work / "record.json")
    newest = max((work / "checkpoints").glob("*.safetensors"))
    return {
        "fingerprint": record["stamp"]["fingerprint"],
        "system": record["stamp"].get("system_fingerprint"),
        "task": json.loads((work / "run.json").read_bytes())["origin"]["decides"].get("task_code"),
        "scores": record["scores"],
        "curves": record["curves"],
        "order": (record.get("determinism") or {}).get("order"),  # older records lack it
        "weights": weights(newest),
        "translations": {path.name: path.read_bytes() for path in work.glob("*.hyp")},
    }


def codes(code: Path) -> dict[str, str]:
    """For the system of each row: the digest of its own code, and that of all code that decides its numbers."""
    environment = {**os.environ, "PYTHONPATH": f"{code}{os.pathsep}{code / 'experiments'}"}
    done = subprocess.run([sys.executable, "-c", ROWS], cwd=code, env=environment, check=True, capture_output=True)
    return dict(json.loads(done.stdout))


def told(file: Path) -> dict[str, Any]:
    """The record in a file."""
    content = json.loads(file.read_bytes())
    return content.get("record", content)


def is_of(file: Path, run: dict[str, Any]) -> bool:
    """Whether a record is of the run asked for: a row may have trained the base row as well."""
    record = told(file)
    return (record["row"], record["seed"]) == (run["row"], run["seed"])


def weights(checkpoint: Path) -> str:
    """SHA-256 of the model's tensors, by name: "12/state_dict/model.encoder.0 ..." without the number."""
    tensors = {name.partition("/")[2]: tensor for name, tensor in load_file(checkpoint).items()}
    digest = hashlib.sha256()
    for name in sorted(name for name in tensors if name.startswith("state_dict/model.")):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode() + tensors[name].tobytes())
    return digest.hexdigest()


def unlike(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The fields in which two outcomes differ; a field that one of them lacks is no difference."""
    names = [name for name in one if name not in CODE and None not in (one[name], other[name])]
    pairs = {name: (one[name], other[name]) for name in names}
    if "scores" in pairs:
        pairs["scores"] = shared_scores(one["scores"], other["scores"]), shared_scores(other["scores"], one["scores"])
    return [name for name, (here, there) in pairs.items() if here != there]


def shared_scores(scores: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """The scores of each split, without newer ones that an older record does not have."""
    return {
        split: {name: value for name, value in of.items() if name in others[split] or name not in LATER_SCORES}
        for split, of in scores.items()
    }


def main() -> None:
    """Compare two commits and write the entry."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("commits", nargs=2, metavar="COMMIT", help="the older one first")
    for name, value in SEED.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help="of the run to compare (%(default)s)")
    options = parser.parse_args()
    run = {name: getattr(options, name) for name in SEED}
    commits = [git("rev-parse", "--verify", f"{name}^{{commit}}").decode().strip() for name in options.commits]
    found: list[dict[str, Any]] = []
    systems: list[dict[str, str]] = []
    for commit in commits:
        with tempfile.TemporaryDirectory() as folder:
            code = unpack(commit, Path(folder) / "code")
            found.append(outcome(code, run, Path(folder) / "work"))
            systems.append(codes(code))
        print(f"{commit[:12]}: code {found[-1]['fingerprint'][:12]}, weights {found[-1]['weights'][:12]}")
    if differing := unlike(*found):
        sys.exit(f"The commits differ in {', '.join(differing)}: nothing is listed.")
    listed = json.loads(LIST.read_bytes())
    for name in CODE:
        join(listed["classes"], *(one[name] for one in found))
    for own, older in systems[0].items():  # the code that all rows share is equal, and so is this system's own
        join(listed["classes"], older, systems[1].get(own, older))
    shown = {"run": run, "commits": commits, "weights": found[-1]["weights"]}
    listed["shown"] = [one for one in listed["shown"] if one["commits"] == commits and one["run"] != run] + [shown]
    write_text(LIST, json.dumps(listed, indent=1) + "\n")
    print(f"Equal to the last digit: listed in {LIST.relative_to(ROOT)}. Commit it.")


def join(classes: list[list[str]], older: str, newer: str) -> None:
    """Let two digests count as one: their classes are merged, in the place of the older's."""
    if older == newer:
        return
    parts = [next((one for one in classes if name in one), [name]) for name in (older, newer)]
    joined = list(dict.fromkeys([*parts[0], *parts[1]]))
    place = classes.index(parts[0]) if parts[0] in classes else len(classes)
    classes[:] = [one for one in classes if one not in parts]
    classes.insert(place, joined)


if __name__ == "__main__":
    main()
