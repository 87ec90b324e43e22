"""The files of docs/cluster.md: read by what reads them, with commands and exit codes that are ours."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from repro.runs import command
from repro.runs.executors import executor
from repro.runs.options import Options, chosen_scale

DOCS = Path(__file__).parents[3] / "docs"
FILES = sorted((DOCS / "cluster").glob("*.yaml"))
OURS = re.compile(r"(?<!\S)experiments/(\w+)\.py(?! exits)([^'\n`#]*)")


def read(name: str) -> Any:
    return yaml.safe_load((DOCS / "cluster" / name).read_bytes())


def commands() -> list[tuple[str, str, str]]:
    pages = [DOCS / "cluster.md", *FILES]
    found = [(page.name, *one) for page in pages for one in OURS.findall(page.read_text("utf-8"))]
    assert {page for page, _, _ in found} == {page.name for page in pages}
    return found


@pytest.mark.parametrize(("page", "table", "words"), commands())
def test_each_command_is_one_of_ours(page: str, table: str, words: str) -> None:
    assert (DOCS.parent / "experiments" / f"{table}.py").is_file()
    options = Options.read(
        table, shlex.split(words.replace("$((JOB_COMPLETION_INDEX + 1))", "1").replace("$I/$N", "1/2"))
    )
    chosen_scale(options)


def test_the_cloud_file_is_what_ray_reads() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs the extra [ray]")
    spec = find_spec("ray")
    assert spec is not None
    assert spec.origin is not None
    schema = json.loads((Path(spec.origin).parent / "autoscaler" / "ray-schema.json").read_bytes())
    cluster = read("ray_up.yaml")
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(cluster | {"max_worker": 3}, schema)


def test_shards_and_exit_codes_of_the_indexed_job() -> None:
    job = read("indexed_job.yaml")["spec"]
    [container] = job["template"]["spec"]["containers"]
    [words] = container["args"]
    assert re.findall(r"--shard \S+ \+ 1\)\)/(\d+)", words) == [str(job["completions"])]
    assert (job["completionMode"], job["podReplacementPolicy"]) == ("Indexed", "Failed")
    rules = {rule["action"]: rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
    assert {rule["containerName"] for rule in rules.values()} == {container["name"]}
    assert rules["FailJob"]["values"] == [command.BAD_INPUT]
    ends = [executor.FAILED, executor.DIVERGED, executor.OUT_OF_MEMORY, command.DISK]
    assert rules["FailIndex"]["values"] == ends  # BUSY and signals are tried again


def test_ray_is_of_the_version_that_is_locked() -> None:
    locked = re.findall(r"^ray==(.*)$", (DOCS.parent / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    cluster = read("rayjob.yaml")["spec"]["rayClusterSpec"]
    assert [cluster["rayVersion"]] == locked
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    containers = [one for pod in pods for one in pod["template"]["spec"]["containers"]]
    assert len({one["image"] for one in containers}) == 1
    assert all({"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in one["env"] for one in containers)
