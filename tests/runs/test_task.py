"""What is read and what is scored is a value: a task that is none of the package's goes from its row to a table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from own_signals import own_signals
from runs.toy_task import Whole

from repro.decoding.search import PAPER_SEARCH
from repro.experiment import Paper, Row, main
from repro.results.frame import ResultSet
from repro.results.record import load
from repro.results.task import TRANSLATION
from repro.runs.parsing import Parsing
from repro.runs.scales import SCALES
from repro.runs.task import Task, Translation, searching_at, task_in_words

pytestmark = pytest.mark.usefixtures("not_looked_inside")


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


def test_translation_is_a_task() -> None:
    task: Task = Translation("en-de")
    assert (task.name, task.search, task.facts) == ("en-de", PAPER_SEARCH, TRANSLATION)
    assert task == Translation("en-de") != Translation("en-fr")
    assert task.score(["ein Hund"], ["eine Katze"], in_tokens=False).keys() == {
        "bleu", "bleu_signature", "bleu_published", "bleu_published_signature",
    }  # fmt: skip
    spanish = Translation("en-es").score(["un perro"], ["un perro"], in_tokens=False)
    assert spanish["bleu_published"] is spanish["bleu_published_signature"] is None


def test_more_text_is_more_of_training_alone_and_only_where_it_is_generated() -> None:
    task, smoke = Translation("en-de", times=4), SCALES["smoke"]
    assert smoke.grammar is not None
    assert task.at(smoke) == replace(smoke, grammar=replace(smoke.grammar, n_train=8_000)) != smoke
    with pytest.raises(ValueError, match="4 times the text of scale captions: expected .* generated"):
        task.at(SCALES["captions"])


def test_a_scale_may_want_short_outputs_of_the_tasks_that_are_ours() -> None:
    smoke, laptop = SCALES["smoke"], SCALES["laptop"]
    for task, extra in ((Translation("en-de"), 10), (Parsing(silver=True), 100)):
        short = searching_at(task, smoke)
        assert (short.search, short.name) == (replace(task.search, extra=extra), task.name)
        assert short == task, "a row is found by its task"
        assert task_in_words(short) == task_in_words(task), "and so are published records"
        assert short.facts == task.facts, "the paper's search is the paper's"
        assert searching_at(task, laptop) is task
    assert searching_at(Whole(1), smoke) == Whole(1), "somebody's own stays as it is"


@pytest.mark.parametrize("pair", ["en", "en-en"])
def test_a_pair_is_refused_where_the_task_is_made(pair: str) -> None:
    with pytest.raises(ValueError, match="like 'en-de', got"):
        Translation(pair)


def test_a_task_in_words_says_where_its_class_stands_and_what_its_fields_hold() -> None:
    assert task_in_words(Whole(1)).startswith("runs.toy_task.Whole(words=1, name='whole', search=Search(beam=2, ")
    assert task_in_words(Whole(1)) != task_in_words(Whole(2))

    @dataclass(frozen=True)
    class Hidden:
        n: int = 1

    with pytest.raises(ValueError, match="expected a class at the top of a module that can be imported") as error:
        task_in_words(Hidden())
    assert "\n" not in str(error.value)


def places(folder: Path) -> list[str]:
    names = {"results-dir": "results", "runs-dir": "runs", "cache-dir": "cache"}
    uri = f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}"
    return [uri, "--scale=smoke", "--steps=1", *(f"--{option}={folder / name}" for option, name in names.items())]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows that differ in their task alone, beside one that translates, as the base does."""
    folder = tmp_path_factory.mktemp("toy")
    rows = [Row(f"words={n}", lambda base: replace(base, n_heads=4), Paper(), Whole(n)) for n in (1, 2)]
    rows.append(Row("h=4", lambda base: replace(base, n_heads=4), Paper()))
    with own_signals():
        main("toy", rows, places(folder))
    [scale] = (folder / "results").iterdir()
    return scale


def test_it_goes_from_its_row_to_a_record(made: Path) -> None:
    one, two = (load(made / f"toy/words={n}-seed1.json") for n in (1, 2))
    assert (one.pair, one.settings["beam"], one.settings["alpha"], one.settings["extra_length"]) == ("whole", 2, 0.3, 7)
    assert one.task == {
        "name": task_in_words(Whole(1)),
        "scores": ["exact", "empty"],
        "search": {"beam": 2, "alpha": 0.3, "extra_length": 7},
    }
    assert one.run != two.run  # the same training under another task is another run
    assert one.scores["dev"].keys() == {
        "nll", "ppl", "accuracy", "exact", "exact_signature", "empty", "empty_signature",
    }  # fmt: skip
    assert (one.scores["dev"]["exact_signature"], one.score("dev", "bleu")) == ("first:1", None)
    for name in ("nll", "accuracy"):  # how well tokens are predicted is asked of every task
        assert one.score("dev", name) == two.score("dev", name) is not None
    assert one.score("dev", "empty") is None
    [base] = (load(file) for file in (made / "base").glob("*.json"))
    assert base.task is None
    of_bleu = {key for key in base.scores["dev"] if "bleu" in key}
    assert base.scores["dev"].keys() == {"nll", "ppl", "accuracy"} | of_bleu


def test_it_goes_from_its_record_to_a_table(made: Path) -> None:
    frame = ResultSet.read_own(made, made / "nowhere").frame(["toy"])
    assert frame is not None
    lines: dict[str, Any] = {line["row"]: line for _, line in frame.iterrows()}
    for n in (1, 2):
        record = load(made / f"toy/words={n}-seed1.json")
        assert lines[f"words={n}"]["dev/exact"] == record.score("dev", "exact")
        for name in ("ppl", "accuracy"):
            assert lines[f"words={n}"][f"dev/{name}"] == record.score("dev", name)
        assert lines[f"words={n}"]["dev/bleu"] != lines[f"words={n}"]["dev/bleu"]  # not a number: it has none
    assert lines["base"]["dev/bleu"] == lines["base"]["dev/bleu"]
    assert "test/exact" in frame  # so in the sheet as well
    left = {departure.name: departure for departure in frame.attrs["departures"]}
    # the toy is searched as its facts say; smoke has shorter outputs of what translates
    assert left["search"].here == {"beam 4, alpha 0.6, at most input + 10": ["base", "h=4"]}
    assert [*left["data"].here.values()] == [["base", "h=4"]]  # what the paper says of its text it says of translation


def test_the_same_command_finds_it_finished(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main("toy", [Row("words=1", lambda base: replace(base, n_heads=4), Paper(), Whole(1))], places(made.parent.parent))
    said = capsys.readouterr().out
    assert "words=1 seed 1: finished before" in said
    assert "EXACT" in said
