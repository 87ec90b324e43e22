"""From archives behind a server to a trained row: fetch, prepare, and an experiment that finds it all."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from file_server import FileServer, tar_of
from file_server import lines as plain
from typed import typed

from repro.corpora import sources
from repro.corpora.catalogue import open_corpus
from repro.corpora.grammar.generate import write_grammar
from repro.experiment import Paper, Row
from repro.experiment import main as experiment
from repro.results.artifacts import read_further
from repro.results.record import load

Said = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

TRAIN = {"europarl_v7": 300, "commoncrawl": 200, "news_commentary_v9": 100, "un_2000": 50, "giga_fren": 150}
HELD_OUT = {"newstest2013": 12, "newstest2014": 9, "newstest2014_full": 10}


def sgm(lines: list[str]) -> bytes:
    segments = "".join(f'<seg id="{i}">{escape(line)}</seg>\n' for i, line in enumerate(lines, 1))
    return f'<refset setid="x"><doc docid="a">\n<p>\n{segments}</p></doc></refset>\n'.encode()


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small archives laid out like the real ones, by our names."""
    folder = tmp_path_factory.mktemp("grammar")
    n = {"train": sum(TRAIN.values()), "dev": HELD_OUT["newstest2013"], "test": HELD_OUT["newstest2014_full"]}
    write_grammar(folder, n_train=n["train"], n_dev=n["dev"], n_test=n["test"], seed=3)

    def lines(split: str, language: str) -> list[str]:
        return (folder / f"{split}.{language}").read_text("utf-8").split("\n")[:-1]

    contents: dict[str, dict[str, bytes]] = {}
    begin = 0
    for name in TRAIN | HELD_OUT:
        source = sources.SOURCES[name]
        for pair, sides in source.members.items():
            for language, member in zip(pair.split("-"), sides, strict=True):
                if name in TRAIN:
                    chosen = lines("train", language)[begin : begin + TRAIN[name]]
                else:
                    chosen = lines("dev" if name == "newstest2013" else "test", language)[: HELD_OUT[name]]
                content = sgm(chosen) if member.name.endswith(".sgm") else plain(chosen)
                content = gzip.compress(content) if member.name.endswith(".gz") else content
                contents.setdefault(source.archive, {})[member.name] = content
        begin += TRAIN.get(name, 0)

    return {
        archive: tar_of(members) if archive.endswith(".tar") else gzip.compress(tar_of(members))
        for archive, members in contents.items()
    }


@pytest.fixture
def server(archives: dict[str, bytes], monkeypatch: Patch) -> Iterator[FileServer]:
    """All sources come from here; their hashes are noted when they are received."""
    monkeypatch.setenv("NO_PROXY", "*")
    with FileServer() as server:
        server.files = {f"/{archive}": content for archive, content in archives.items()}
        for name, n in (TRAIN | HELD_OUT).items():
            source = sources.SOURCES[name]
            unknown = replace(source, urls=(server.url(f"/{source.archive}"),), size=None, sha256=None, md5=None)
            monkeypatch.setitem(sources.SOURCES, name, replace(unknown, n_pairs=dict.fromkeys(source.n_pairs, n)))
        yield server


def said(capsys: Said, *words: str, code: int = 0) -> str:
    return typed(capsys, "data", *words, code=code)


@pytest.mark.parametrize(
    ("corpus", "n_train", "n_test", "tokens"),
    [("wmt14-en-de", 600, 10, 700), ("wmt14-en-fr", 800, 9, 900), ("news-commentary-en-de", 100, 10, 300)],
)
def test_from_archives_to_a_data_card(
    tmp_path: Path,
    server: FileServer,
    capsys: Any,
    monkeypatch: Patch,
    corpus: str,
    n_train: int,
    n_test: int,
    tokens: int,
) -> None:
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    planned = said(capsys, "fetch", corpus, "--dry-run")
    assert f"{n_train:,} pairs" in planned
    assert ("training-parallel-europarl-v7.tgz" in planned) == corpus.startswith("wmt14")
    assert not (tmp_path / "data").exists()

    fetched = said(capsys, "fetch", corpus)
    known = corpus.replace("news-commentary", "news_commentary")
    assert f"-m repro data prepare {known}" in fetched
    n_requests = len(server.log)
    data = f"--data-dir={tmp_path / 'data'}"
    said(capsys, "fetch", corpus, data)
    said(capsys, "fetch", corpus, data, "--offline")
    assert len(server.log) == n_requests  # what is there is not asked for again

    options = (f"--cache-dir={tmp_path / 'cache'}", f"--vocab-size={tokens}")
    first = said(capsys, "prepare", corpus, *options, "--workers=2")
    assert f"train {n_train:,}, dev 12, test {n_test}" in first
    second = said(capsys, "prepare", corpus, data, *options)
    assert first.split("manifest ")[1] == second.split("manifest ")[1]

    card = json.loads(Path(second.split("\n")[-2]).read_bytes())
    parts = sources.COLLECTIONS[known].train
    assert [part["part"] for part in card["parts"]] == ([*parts] if len(parts) > 1 else [""])


def test_a_table_runs_on_it_unchanged(tmp_path: Path, server: FileServer, capsys: Said, monkeypatch: Patch) -> None:
    places = [f"--{name}-dir={tmp_path / name}" for name in ("data", "results", "runs", "cache")]
    argv = ["--scale=smoke", "--corpus=wmt14", "--steps=1", f"--tracking-uri=sqlite:///{tmp_path / 'mlflow.db'}"]
    rows = [Row("x", lambda base: replace(base, dropout=0.25), Paper(bleu=1.0))]
    with pytest.raises(SystemExit) as left:
        experiment("table_x", rows, [*argv, *places])
    assert left.value.code == 2
    assert "python -m repro data fetch wmt14-en-de" in capsys.readouterr().err

    said(capsys, "fetch", "wmt14-en-de", places[0])
    experiment("table_x", rows, [*argv, *places, "--batch-by=tokens", "--rows=base"])
    out = capsys.readouterr().out
    assert "train 600, dev 12, test 10 pairs" in out
    [record] = (tmp_path / "results").rglob("base/*.json")
    assert "by-tokens" in record.parts[-3]
    assert '"fill": "tokens"' in record.read_text("utf-8")
    [(name, scored)] = read_further(record, load(record).run).items()
    assert (name, len(scored.hypotheses)) == ("newstest2014", 9)


CAPTION_SPLITS = ("train", "val", "test_2016_flickr", "test_2017_flickr")


def captions(texts: Mapping[str, bytes], mtime: int = 0) -> bytes:
    """An archive like that of multi30k/dataset."""
    place = "dataset-a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
    packed = {f"{place}/{name}.gz": gzip.compress(content, mtime=mtime) for name, content in texts.items()}
    return gzip.compress(tar_of(packed), mtime=mtime)


def test_captions_are_known_by_their_texts(tmp_path: Path, capsys: Any, monkeypatch: Patch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    texts = {
        f"{split}.{language}": f"{split} {language} {content}\n".encode()
        for split in CAPTION_SPLITS
        for language, content in (("en", "a dog"), ("de", "ein Hund"))
    }
    with FileServer() as server:
        for split in CAPTION_SPLITS:
            known = sources.SOURCES[f"multi30k_{split}"]
            digests = [hashlib.sha256(texts[f"{split}.{one.language}"]).hexdigest() for one in known.members["en-de"]]
            sides = [replace(one, sha256=of) for one, of in zip(known.members["en-de"], digests, strict=True)]
            members = {"en-de": (sides[0], sides[1])}
            small = replace(known, members=members, n_pairs={"en-de": 1}, urls=(server.url("/captions"),))
            monkeypatch.setitem(sources.SOURCES, known.name, small)
        fetch = ("fetch", "multi30k-en-de", f"--data-dir={tmp_path / 'data'}")
        server.files["/captions"] = captions(texts | {"val.de": b"val de ein hund\n"})
        refused = said(capsys, *fetch, code=2)
        right = hashlib.sha256(texts["val.de"]).hexdigest()
        assert f"raw/val.de.gz' is not the published text: expected SHA-256 {right}, got " in refused
        (tmp_path / "data/archives/multi30k-a3d2e0d.tar.gz").unlink()
        assert not (tmp_path / "data/wmt/multi30k_val-en-de").exists()
        server.files["/captions"] = captions(texts, mtime=1)  # packed anew: other bytes, the same texts
        said(capsys, *fetch)
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("repro.corpora.catalogue.KNOWN", {})
    fetched = open_corpus("multi30k", "en-de", data_dir=tmp_path / "data", cache=tmp_path / "cache")
    by_hand = open_corpus("multi30k", "en-de", data_dir=tmp_path, cache=tmp_path / "cache")
    assert fetched.test.source.parent.name == "multi30k_test_2016_flickr-en-de"
    assert (fetched.sha256, by_hand.test.source.parent) == (by_hand.sha256, tmp_path)
    for corpus in (fetched, by_hand):
        [(name, text)] = corpus.further.items()
        assert (name, [*text.pairs()]) == ("test_2017_flickr", [(f"{name} en a dog", f"{name} de ein Hund")])


def test_every_archive_is_explained(capsys: Said) -> None:
    listed = said(capsys, "fetch", "--list")
    for source in sources.SOURCES.values():
        [found] = [part for part in listed.split("\n\n") if part.startswith(f"{source.archive}  ")]
        identity = source.sha256 or source.md5 or "of its texts"
        for fact in (source.about, source.licence, identity, f"{source.size_at_most:,}", *source.urls):
            assert fact in found
    assert len(said(capsys, "fetch", "wmt14-en-de", "--list").split("\n\n")) < len(listed.split("\n\n"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["fetch"], "These can be fetched: multi30k-en-de, "),
        (["fetch", "tatoeba-en-de"], "https://www.manythings.org/anki"),
        (["fetch", "wmt15-en-de"], "corpora are grammar, multi30k"),
        (["fetch", "grammar-en-de"], "Nothing to fetch for grammar-en-de. It is generated on the spot."),
        (["fetch", "multi30k-en-de", "--offline"], "known by the SHA-256 of its texts"),
        (["fetch", "wmt14-en-de", "--offline"], "training-parallel-europarl-v7.tgz"),
        (["prepare", "wmt14-en-de"], "python -m repro data fetch wmt14-en-de"),
        (["prepare", "grammar-en-de", "--clean", "tidy"], "Unknown cleaning rule 'tidy'"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, capsys: Said, argv: list[str], message: str) -> None:
    data = [] if "grammar-en-de" in argv else [f"--data-dir={tmp_path}"]
    assert message in said(capsys, *argv, *data, code=2)


def test_the_embedded_corpus_needs_no_fetching(tmp_path: Path, capsys: Said) -> None:
    prepared = said(capsys, "prepare", "grammar-en-fr", f"--cache-dir={tmp_path}", "--vocab-size=600")
    assert "train 3,000, dev 1,000, test 1,000 pairs" in prepared
