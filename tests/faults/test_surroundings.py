"""The same bytes wherever and however it runs: hash seed, language, time zone, folder, umask, order of listing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import hashlib, os, sys
from pathlib import Path
if os.environ["LISTED"] == "backwards":
    scandir, listdir = os.scandir, os.listdir
    class Backwards:
        def __init__(self, *place): self.found = list(scandir(*place))[::-1]
        def __enter__(self): return iter(self.found)
        def __exit__(self, *_): pass
        def __iter__(self): return iter(self.found)
    os.scandir = Backwards
    os.listdir = lambda *place: listdir(*place)[::-1]
    os.umask(0o077)
from repro.results import record; from repro.pages import build as report; from repro.results import provenance as stamp
from repro.data.batching import Plan
from repro.corpora.catalogue import GrammarSizes, open_corpus
from repro.data.vocabulary import Subwords
from repro.corpora.prepare import prepare
from repro.results.frame import ResultSet
sys.path.insert(0, sys.argv[2])
from paper_runs import PAPER_SETTINGS, paper_run
here = Path(sys.argv[1])
corpus = open_corpus("grammar", "en-de", data_dir=None, cache=here, sizes=GrammarSizes(n_train=300, n_dev=9, n_test=9))
done = prepare(corpus, subwords=Subwords("bpe", 300), cache=here, max_length=64, workers=int(os.environ["WORKERS"]))
print(corpus.sha256, done.data_hash, done.manifest_hash, done.tokenizer.sha256, stamp.fingerprint())
sides = done.train.source.lengths, done.train.target.lengths
plan = Plan(*sides, budget=512, data_hash=done.data_hash, seed=1).updates()
print(hashlib.sha256(b"".join(next(plan).sentences.tobytes() for _ in range(40))).hexdigest())
for row, seed in (("base", 2), ("base", 1)):
    one = paper_run(row=row, seed=seed, settings=PAPER_SETTINGS | {"claim": "the numbers"})
    one.save(record.path(here / "results", one))
for path in sorted(report.write_scale(ResultSet.read(here / "results" / "paper"))):
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
"""


def made(folder: Path, **surroundings: str) -> str:
    """The hashes of all that comes out, in a process of its own."""
    (folder / "here").mkdir(parents=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | surroundings
    command = [sys.executable, "-c", PROGRAM, str(folder), str(ROOT / "tests")]
    done = subprocess.run(command, cwd=folder / "here", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_same_bytes_in_other_surroundings(tmp_path: Path) -> None:
    here = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC", "LISTED": "as it comes", "WORKERS": "1"}
    there = {
        "PYTHONHASHSEED": "7",
        "LC_ALL": "de_DE.UTF-8",
        "TZ": "Asia/Kathmandu",
        "LISTED": "backwards",
        "WORKERS": "2",
    }
    one, other = made(tmp_path / "one", **here), made(tmp_path / "an other", **there, PYTHONUTF8="1")
    assert one == other
    assert one.count("\n") == 2 + 4  # hashes of the text, of the plan, and of four files
