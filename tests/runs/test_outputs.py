"""What stands beside a record: translations that are scored again, other test sets, and what a model does inside."""

import gzip
import shutil
import signal
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from kept_sentences import REFERENCES, hypotheses, with_scores
from looked_inside import HYPER, LINES, RUN, its_record, keep, looked_at, spec_of
from own_signals import own_signals, places
from paper_runs import paper_run
from text_folders import text_folder
from torch import Tensor

from repro.corpora.catalogue import CORPORA, GrammarSizes, open_corpus
from repro.decoding.inside import KINDS, by_words
from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.experiment import main
from repro.model.build import build
from repro.model.special_tokens import EOS, PAD
from repro.pages.tables import further_section
from repro.render.page import Table
from repro.results import artifacts, sentences
from repro.results.artifacts import FurtherTest, inside_file, own_file, read_further, read_inside, write_further
from repro.results.details import with_further
from repro.results.frame import table
from repro.results.record import Record, load, path
from repro.results.sentences import Translated, faults, read_hypotheses, read_places
from repro.runs import outputs
from repro.runs.outputs import at_hand, rescored, seen_inside
from repro.tracking.client import connect
from repro.training.checkpoint import weights as averaged_weights
from repro.training.run_spec import path_of

LENGTHS = {"dev": [7, 5, 3], "test": [11, 2]}
SIZES = GrammarSizes(n_train=30, n_dev=3, n_test=2)


def a_run(folder: Path, seed: int = 1) -> Any:
    """As much of a run as is asked for, its translations in its folder."""
    folder.mkdir(exist_ok=True)
    for split in REFERENCES:
        (folder / f"{split}.hyp").write_text("".join(f"{line}\n" for line in hypotheses(seed, split)), "utf-8")
    prepared = {
        split: SimpleNamespace(references=lines, source=SimpleNamespace(lengths=np.array(LENGTHS[split], np.uint16)))
        for split, lines in REFERENCES.items()
    }
    return SimpleNamespace(
        folder=folder,
        prepared=SimpleNamespace(**prepared),
        corpus=SimpleNamespace(name="folder", in_tokens=False, further={}),
        spec=spec_of(),  # whose checkpoints are not there
    )


def h1(seed: int = 1, **other: Any) -> Record:
    return with_scores(paper_run("h=1", "table3_A", seed=seed, run=f"{seed:016x}", scale="lab", **other))


def test_what_a_run_translated_stands_beside_its_record(tmp_path: Path) -> None:
    keep(a_run(tmp_path / "run"), h1(), tmp_path)
    assert not list(faults(tmp_path, h1()))
    assert read_hypotheses(path(tmp_path, h1()), "test") == hypotheses(1, "test")
    places = read_places(tmp_path, h1(), "dev")
    assert places is not None
    assert places.source == LENGTHS["dev"]
    assert [len(third) for third in places.thirds] == [3] * 3
    assert read_places(tmp_path, h1(), "test") is None


def test_what_stands_there_is_not_made_again_unless_it_is_of_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(outputs, "Translated", lambda *of, **how: made.append(1) or Translated(*of, **how))
    for _ in range(2):
        keep(a_run(tmp_path / "run"), h1(), tmp_path)
    assert len(made) == 2, "dev and test, once"
    other = replace(h1(2), seed=1)  # the row again, of other code
    keep(a_run(tmp_path / "run", seed=2), other, tmp_path)
    assert len(made) == 4
    assert artifacts.are_of(path(tmp_path, other), other.run)
    own_file(path(tmp_path, other), "dev").write_bytes(b"damaged")
    keep(a_run(tmp_path / "run", seed=2), other, tmp_path)
    assert not list(faults(tmp_path, other))


def on_grammar(cache: Path, results: Path, shift: int = 0) -> Record:
    """A run that translated the embedded corpus with its own references, as if `shift` lines further down."""
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=cache, sizes=SIZES)
    splits = {}
    for split, text in (("dev", corpus.dev), ("test", corpus.test)):
        lines = [target for _, target in text.pairs()]
        splits[split] = Translated(lines[shift:] + lines[:shift], lines, "en-de", in_tokens=False)
    of = {"name": "grammar", "sha256": corpus.sha256, "n_train": 28, "dropped": {"too long": 2}}
    made = h1(corpus={**paper_run().corpus, **of})
    made = with_scores(made, splits)
    sentences.write_sentences(path(results, made), made.run, splits)
    return made


def test_generated_text_is_scored_again_and_counts_that_fit_the_record_alone_are_found(tmp_path: Path) -> None:
    whole = on_grammar(tmp_path / "cache", tmp_path)
    assert (whole.score("dev", "bleu"), rescored(whole, tmp_path, tmp_path / "cache")) == (pytest.approx(100), None)
    on_grammar(tmp_path / "cache", tmp_path / "other", shift=1)
    # translations with counts and scores of others, all of it signed
    shifted = read_hypotheses(path(tmp_path / "other", whole), "dev")
    place = path(tmp_path, whole)
    kept = artifacts.read(place, "dev")
    assert kept is not None
    about = {**kept.about, "hypotheses": sentences.sha256_of(shifted)}
    artifacts.write(place, "dev", artifacts.Artifact(about, {**kept.columns, "hypothesis": shifted}))
    assert not list(faults(tmp_path, whole))
    said = rescored(whole, tmp_path, tmp_path / "cache")
    assert said is not None
    assert said.startswith("its translations of dev score bleu ")
    assert said.endswith(f"but the record says {whole.score('dev', 'bleu')}")


def test_text_that_is_not_at_hand_is_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nowhere"))
    made = on_grammar(tmp_path / "cache", tmp_path)
    assert at_hand(made, tmp_path / "cache") is not None
    for corpus in ({"sha256": "ab"}, {"name": "folder"}, {"name": "gone"}, {"name": "wmt14"}):
        elsewhere: Any = {**made.corpus, **corpus}
        assert at_hand(replace(made, corpus=elsewhere), tmp_path / "cache") is None
        assert rescored(replace(made, corpus=elsewhere), tmp_path, tmp_path / "cache") is None


# ---- other test sets: scored as test is, kept, made once, shown and published

SIDES = ("en", "de")


def launch(folder: Path, *more: str) -> Record:
    """One update on the text in `folder`; its own results are there too."""
    options = ["--scale=smoke", "--corpus=folder", f"--data-dir={folder / 'text'}", "--vocab-size=300", "--steps=1"]
    with own_signals():
        main("t", [], [*options, *places(folder, *more)])
    [file] = folder.glob("results/*/base/base-seed1.json")
    return load(file)


def in_mlflow(folder: Path) -> tuple[int, dict[str, float]]:
    """When the run of `launch` ended by the tracker, and its scores on other test sets there."""
    client = connect(f"sqlite:///{folder / 'mlflow.db'}")
    [run] = client.search_runs([one.experiment_id for one in client.search_experiments()])
    assert run.info.status == "FINISHED"
    return run.info.end_time, {key: value for key, value in run.data.metrics.items() if key.startswith("further/")}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run on text with a test set of five pairs, and with these five again under another name; what it said."""
    known = replace(CORPORA["folder"], further={"again": ("again",), "absent": ("absent",)})
    sizes = GrammarSizes(n_train=80, n_dev=5, n_test=5)
    folder = tmp_path_factory.mktemp("first")
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=folder / "cache", sizes=sizes)
    parts = {"train": corpus.train[0], "dev": corpus.dev, "test": corpus.test, "again": corpus.test}
    text_folder(folder / "text", **{name: [*part.pairs()] for name, part in parts.items()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CORPORA, "folder", known)
        with open(folder / "said", "w") as said, redirect_stdout(said):
            launch(folder)
        yield folder


@pytest.fixture
def record(first: Path, tmp_path: Path) -> Record:
    """The same in a folder of its own."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    [file] = tmp_path.glob("results/*/base/base-seed1.json")
    return load(file)


def test_the_same_text_under_another_name_scores_the_same(record: Record, tmp_path: Path) -> None:
    tests = read_further(path(tmp_path / "results", record), record.run)
    assert tests.keys() == {"again"}
    assert tests["again"].scores == record.scores["test"]
    of_test = (tmp_path / "runs" / record.run / "test.hyp").read_text("utf-8")
    assert tests["again"].hypotheses == of_test.split("\n")[:-1]
    shown = (tmp_path / "results" / record.scale / "table3.md").read_text("utf-8")
    [line] = [line for line in shown.split("## Other test sets")[1].splitlines() if line.startswith("| base")]
    bleu = [record.scores["test"][name] for name in ("bleu", "bleu_published")]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["1", *(f"{value:.1f}" for value in bleu)]
    assert "t  base seed 1, again  5/5" in (tmp_path / "said").read_text()
    scores = {f"further/again/{name}": value for name, value in tests["again"].scores.items()}
    assert "further/again/bleu" in scores
    assert in_mlflow(tmp_path)[1] == {key: value for key, value in scores.items() if isinstance(value, float)}


def test_another_test_set_is_scored_once_and_again_where_its_text_changed(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[list[str]] = []
    text, scored = tmp_path / "text", outputs._scored
    monkeypatch.setattr(outputs, "_scored", lambda run, by, of, go: again.append([*of]) or scored(run, by, of, go))
    file = own_file(path(tmp_path / "results", record), "again")
    first = file.read_bytes()
    file.write_bytes(first[:-9])
    launch(tmp_path)
    assert (file.read_bytes(), again) == (first, []), "the folder of the run has it"
    for name in ("again", "absent"):  # the one is another text now, the other is new
        for side in SIDES:
            (text / f"{name}.{side}").write_bytes((text / f"dev.{side}").read_bytes())
    ended, _ = in_mlflow(tmp_path)
    launch(tmp_path)
    assert again == [["again", "absent"]]
    again_ended, found = in_mlflow(tmp_path)
    assert again_ended == ended, "it took no longer for what came of it later"
    tests = read_further(path(tmp_path / "results", record), record.run)
    assert tests["again"].scores == tests["absent"].scores == record.scores["dev"]
    nll = record.scores["dev"]["nll"]
    assert [found[f"further/{name}/nll"] for name in ("again", "absent")] == [nll, nll]


def test_a_damaged_checkpoint_of_a_finished_run_is_named_and_stops_nothing(
    record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, folder = path(tmp_path / "results", record), tmp_path / "runs" / record.run
    files = [own_file(place, "again"), inside_file(place)]
    for file in (*files, own_file(folder / "record.json", "again"), inside_file(folder / "record.json")):
        file.unlink()
    for checkpoint in (folder / "checkpoints").iterdir():
        checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    capsys.readouterr()
    assert launch(tmp_path) == record
    said = capsys.readouterr()
    told = f"Its checkpoints in {folder / 'checkpoints'} cannot be read, so nothing "
    assert (said.out + said.err).count(told) == 1, "and not once for each of what is left out"
    assert not any(file.exists() for file in files)


def test_what_cannot_be_made_costs_neither_the_record_nor_its_translations(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside_file(tmp_path / "runs" / record.run / "record.json").unlink()
    shutil.rmtree(tmp_path / "results")
    monkeypatch.setattr(outputs, "seen_inside", lambda *_: bytearray(2**60))
    with pytest.raises(MemoryError):
        launch(tmp_path)
    assert load(path(tmp_path / "results", record)) == record
    assert not [*faults(tmp_path / "results", record)]


def test_a_run_that_is_stopped_at_another_test_set_has_its_record_and_goes_on_later(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(first / "text", tmp_path / "text")
    scored = outputs._scored

    def stopped(*of: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return scored(*of)

    monkeypatch.setattr(outputs, "_scored", stopped)
    with pytest.raises(SystemExit):
        launch(tmp_path)
    [file] = tmp_path.glob("runs/*/record.json")
    assert not own_file(file, "again").exists()
    monkeypatch.setattr(outputs, "_scored", scored)
    record = launch(tmp_path)
    assert record == replace(load(file), **{"stamp": record.stamp})
    assert read_further(path(tmp_path / "results", record), record.run).keys() == {"again"}


def test_translations_that_do_not_score_what_their_file_says_are_found(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus("folder", "en-de", data_dir=tmp_path / "text", cache=tmp_path / "cache")
    monkeypatch.setattr(outputs, "at_hand", lambda record, cache: corpus)
    place = path(tmp_path / "results", record)
    assert rescored(record, tmp_path / "results", tmp_path / "cache") is None
    right = read_further(place, record.run)["again"]
    references = [target for _, target in corpus.test.pairs()]
    write_further(place, record.run, {"again": right._replace(hypotheses=references)})
    found = rescored(record, tmp_path / "results", tmp_path / "cache")
    assert found
    assert found.startswith("its translations of again score bleu 100.0000, but their file says 0.")
    write_further(place, record.run, {"again": right._replace(hypotheses=references[:-1])})
    found = rescored(record, tmp_path / "results", tmp_path / "cache")
    assert found == "again has 4 translations of 5 sentences"


def a_test(bleu: float | None) -> FurtherTest:
    scores: Any = {"nll": 1.0, "bleu": bleu, "bleu_signature": "s", "bleu_published": None}
    return FurtherTest("ef" * 32, scores, ["a", "b"])


def test_a_mean_is_over_the_seeds_that_have_it_and_says_how_many(tmp_path: Path) -> None:
    base = [paper_run(seed=seed, run=f"{seed:016x}") for seed in (1, 2, 3)]
    other = [paper_run("h=1", "table3_A", seed=1, run="f" * 16)]
    without = [paper_run("h=16", "table3_A", seed=1, run="e" * 16)]
    for record, bleu in zip(base[:2], (20.0, 30.0), strict=True):
        write_further(path(tmp_path, record), record.run, {"x": a_test(bleu)})
    write_further(path(tmp_path, other[0]), other[0].run, {"x": a_test(7.0), "y": a_test(None)})
    everything = [*base, *without, *other]
    frame = with_further(table(everything), everything, tmp_path)
    of = dict(zip(frame["row"], frame.to_dict("records"), strict=True))
    assert [of[row]["further/x/n"] for row in ("base", "h=1")] == [2, 1]
    assert [of[row]["further/x/bleu"] for row in ("base", "h=1")] == [25.0, 7.0]
    assert [of[row]["further/x/bleu_min"] for row in ("base", "h=1")] == [20.0, 7.0]
    _, shown, *_ = further_section(frame, [1, 2])
    assert isinstance(shown, Table)
    assert shown.ruled == {1}, "below the base, and not below the last row"
    columns = {(column.group, column.heading): list(column.texts) for column in shown.columns}
    assert columns["", "row"] == ["base", "h=1 (here 8)"], "rows that were not scored stay away"
    assert columns["x", "n"] == ["2", "1"]
    assert columns["x", "sacreBLEU"] == ["25.0 [20.0, 30.0]", "7.0"]
    assert columns["y", "n"] == ["", "1"]
    assert columns["y", "sacreBLEU"] == ["", ""]


# ---- inside: what is kept is what the model does


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two updates are enough here for a look at the paper's sentences."""
    monkeypatch.setattr(outputs, "LEARNED", HYPER.steps)
    return looked_at(tmp_path / "run")


def test_what_is_kept_is_what_the_model_does(run: Any, tmp_path: Path) -> None:
    record = its_record()
    keep(run, record, tmp_path)
    content, data = read_inside(path(tmp_path, record))
    model, tokenizer = build(None, HYPER, run.prepared.tokenizer.size).eval(), run.prepared.tokenizer
    model.load_state_dict(averaged_weights(path_of(run.folder / "checkpoints", 2), RUN))
    assert [one["about"] for one in content["sentences"][:3]] == ["line 2 of dev", "line 4 of dev", "line 6 of dev"]
    assert {one["about"] for one in content["left_out"]} <= {*outputs.NAMES_OF_PAPER.values()}
    unpacked = artifacts.weights_of(content, data)
    assert len(unpacked) == len(content["sentences"])
    for one, kept, line in zip(content["sentences"], unpacked, (1, 3, 5), strict=False):
        ids = run.prepared.dev.source.sentence(line)
        side: Any = SimpleNamespace(lengths=[len(ids)], sentence=lambda i, ids=ids: ids)
        [found] = translate(model, side, Search.of(record.settings))
        assert "".join(one["source"]["tokens"][:-1]) == LINES[line]
        assert "".join(token for token in one["target"]["tokens"] if token != "</s>") == tokenizer.decode(found)
        finished = one["target"]["tokens"][-1:] == ["</s>"]
        decoder_in = torch.tensor([[PAD, *found][: len(found) + finished]])
        maps = model.attention_maps(torch.tensor([[int(id) for id in ids]]), decoder_in)
        assert [of["kind"] for of in one["attention"]] == [*KINDS]
        for of in one["attention"]:
            layers = [maps[KINDS[of["kind"]].format(n)][0] for n in range(HYPER.n_layers)]
            expected: Tensor = torch.stack(layers).double()
            np.testing.assert_allclose(kept[of["kind"]], expected, atol=1 / 510 + 1e-9)
            entropy = torch.special.entr(expected).sum(-1).mean(-1)
            np.testing.assert_allclose(of["entropies"], entropy, atol=6e-4)
        assert tree_says(one["tree"]) == (tokenizer.decode(found), finished)


def tree_says(tree: dict[str, Any]) -> tuple[str, bool]:
    """The translation that the answer of a tree spells, and whether it ended."""
    words: list[str] = []
    place = tree["best"]
    while place >= 0:
        parent, piece, *_ = tree["nodes"][place]
        words.insert(0, tree["pieces"][piece])
        place = parent
    return "".join(word for word in words if word != "</s>").removeprefix(" "), words[-1] == "</s>"


def test_it_is_made_once_and_again_for_another_run(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(outputs, "seen_inside", lambda *of: made.append(1) or seen_inside(*of))
    record = its_record()
    place = path(tmp_path, record)
    for _ in range(2):
        keep(run, record, tmp_path)
    first = inside_file(place).read_bytes()
    assert len(made) == 1
    for damaged in (first[:-9], gzip.compress(gzip.decompress(first)[:-1])):
        inside_file(place).write_bytes(damaged)
        assert not artifacts.is_inside_of(place, RUN), "damaged"
    keep(run, record, tmp_path)
    assert inside_file(place).read_bytes() == first, "the same bytes"
    assert len(made) == 1, "the folder of the run has it"
    inside_file(run.folder / "record.json").unlink()
    inside_file(place).unlink()
    keep(run, record, tmp_path)
    assert inside_file(place).read_bytes() == first, "the same bytes"
    assert len(made) == 2, "of a run that finished before there was such a file"
    inside_file(run.folder / "record.json").unlink()
    path_of(run.folder / "checkpoints", 2).unlink()
    keep(run, record, tmp_path)
    assert artifacts.is_inside_of(place, RUN), "what is its own stays when the checkpoint goes"
    keep(run, replace(record, run="00000000000000cd"), tmp_path)
    assert not inside_file(place).exists(), "of another run, and nothing to make it from"


def test_only_generated_text_is_shown_and_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "LEARNED", HYPER.steps)
    run = looked_at(tmp_path / "run", corpus="multi30k")
    keep(run, its_record(), tmp_path)
    content, _ = read_inside(path(tmp_path, its_record()))
    told = [*content["sentences"], *content["left_out"]]
    assert sorted(one["about"] for one in told) == sorted(outputs.NAMES_OF_PAPER.values())
    assert b"dog" not in gzip.decompress(inside_file(path(tmp_path, its_record())).read_bytes())


def test_a_file_is_as_large_as_it_may_be_and_the_papers_sentences_are_of_models_that_learned(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, most, learned in (("all", 9_000, HYPER.steps), ("own", 100_000, HYPER.steps + 1)):
        monkeypatch.setattr(artifacts, "LARGEST", most)
        monkeypatch.setattr(outputs, "LEARNED", learned)
        (run.folder / "record.inside.gz").unlink(missing_ok=True)
        keep(run, its_record(), tmp_path / setting)
        content, _ = read_inside(path(tmp_path / setting, its_record()))
        assert 0 < inside_file(path(tmp_path / setting, its_record())).stat().st_size <= most
        about = [[one["about"].split()[0] for one in content[part]] for part in ("sentences", "left_out")]
        if setting == "own":
            assert about == [["line"] * 3, []]
        else:
            assert (len(about[0] + about[1]), bool(about[1])) == (5, True)


def test_words_are_made_of_their_tokens() -> None:
    spelled = {2: "the", 3: " Schr", 4: "ank", 5: ",", 6: " no. 7", 7: "s"}
    tokenizer: Any = SimpleNamespace(decode=lambda ids: "".join(spelled.get(id, "") for id in ids))
    found = by_words([2, 3, 4, 5, EOS], tokenizer)
    assert found == {
        "tokens": ["the", " Schr", "ank", ",", "</s>"],
        "words": ["the", "Schrank", ",", "</s>"],
        "of": [0, 1, 1, 2, 3],
    }
    over = by_words([2, 6, 7], tokenizer)
    assert (over["words"], over["of"]) == (["the", "no. 7s"], [0, 1, 1]), "a token over several words makes one of them"
    assert by_words([EOS], tokenizer) == {"tokens": ["</s>"], "words": ["</s>"], "of": [0]}
