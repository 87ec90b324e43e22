"""Tasks are values, by which rows are told apart; scales bear every row, and that of the paper is the paper's.

Table 4 goes the whole way: from a treebank to a page, and to trees of new sentences.
"""

import json
import runpy
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pytest
from data.test_treebank import whole
from own_signals import own_signals, places
from paper_runs import paper_run

from repro.cli.commands import main as command
from repro.corpora.grammar.generate import gold_trees
from repro.data.treebank import Leaf, Tree, bracketed, linearised, read_trees
from repro.decoding.search import PAPER_SEARCH, Search
from repro.experiment import main
from repro.model.config import BASE
from repro.results import record
from repro.results.record import TRANSLATION, Record
from repro.results.sentences import read_brackets
from repro.runs.options import Options, chosen_scale
from repro.runs.outputs import brackets_of
from repro.runs.scales import SCALES
from repro.runs.table import SCORES, Parsing, Row, Task, Translation, searching_at


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
        assert short.facts == task.facts, "so are published records, and the paper's search is the paper's"
        assert searching_at(task, laptop) is task


@pytest.mark.parametrize("scale", SCALES)
def test_the_widths_of_a_scale_can_be_divided_by_every_row(scale: str) -> None:
    base = SCALES[scale].base
    assert (base.n_heads, base.n_layers % 3, base.d_model % 64, base.d_k % 4) == (8, 0, 0, 0)


def test_the_paper_scale_is_the_papers() -> None:
    paper = SCALES["paper"]
    base = paper.base
    assert (base.n_layers, base.d_model, base.d_ff, base.n_heads, base.d_k, base.d_v) == (6, 512, 2_048, 8, 64, 64)
    assert (base.dropout, base.label_smoothing, base.steps, base.warmup) == (0.1, 0.1, 100_000, 4_000)
    # section 5.1: WMT 2014, batches of "approximately 25000 source tokens and 25000 target tokens"
    assert (paper.corpus, paper.batch_tokens, paper.batch_by, paper.rules) == ("wmt14", 25_000, "tokens", ())
    tokens = {pair: (paper.subwords(pair).kind, paper.subwords(pair).size) for pair in ("en-de", "en-fr")}
    assert tokens == {"en-de": ("bpe", 37_000), "en-fr": ("wordpiece", 32_000)}


ROOT = Path(__file__).parents[2]
TABLE4 = runpy.run_path(str(ROOT / "experiments" / "table4.py"))
ROWS: list[Row] = TABLE4["ROWS"]
OURS = "xqz"


# The task ----------------------------------------------------------------------------------------------------


def test_it_is_searched_and_scored_as_section_6_3_says() -> None:
    task = Parsing()
    assert task.search == Search(beam=21, alpha=0.3, extra=300)
    assert task.facts["search"] == {"beam": 21, "alpha": 0.3, "extra_length": 300}
    assert task.facts["scores"][:4] == ["f1", "precision", "recall", "exact"]
    assert task.facts["name"] != Parsing(silver=True).facts["name"]


def test_its_scores_by_hand() -> None:
    """The golden example of EVALB; then an output that is none."""
    gold = [
        "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S",
        "(S (NP (NP PRP )NP )NP (VP VBD (PRT RP )PRT )VP , (NP DT NN )NP . )S",
    ]
    found = [
        "(S (NP NNP )NP (VP VBZ (NP DT NN )NP . )VP )S",
        "(S (NP PRP )NP (VP VBD (ADVP RP )ADVP )VP , (NP DT NN )NP . )S",
    ]
    scores = Parsing().score(found, gold, in_tokens=False)
    assert [round(float(scores[name] or 0), 2) for name in SCORES] == [94.74, 100, 90, 50, 94.74, 0]
    assert scores["f1_signature"] == "F1|rules:evalb-COLLINS.prm|version:1|length:all|sentences:2"
    assert scores["f1_short_signature"] == "F1|rules:evalb-COLLINS.prm|version:1|length:40|sentences:2"
    nothing = Parsing().score(["", ")S"], gold, in_tokens=False)
    assert [nothing[name] for name in SCORES] == [0, 0, 0, 0, 0, 100]


def test_each_scale_has_a_treebank_and_a_vocabulary_twice_as_large_with_silver() -> None:
    texts = {name: Parsing().at(scale).corpus for name, scale in SCALES.items()}
    assert texts == {
        "smoke": "grammar_trees", "laptop": "grammar_trees", "captions": "craft", "single_gpu": "craft", "paper": "wsj",
    }  # fmt: skip
    for scale in SCALES.values():
        gold, silver = (Parsing(silver=silver).at(scale).subwords("en-tree").size for silver in (False, True))
        assert silver == 2 * gold
        assert Translation("en-de").at(scale) == scale
    assert Parsing().at(SCALES["paper"]).subwords("en-tree").size == 16_384
    asked = chosen_scale(Options(scale="laptop", corpus="craft", vocab_size=999))
    assert (Parsing().at(asked).corpus, Parsing().at(asked).vocab_size) == ("craft", 999)


def test_an_update_has_room_for_the_longest_tree_before_one_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--scale=captions", "--batch-tokens=200", "--dry-run"]  # enough for sentences
    with pytest.raises(SystemExit):
        main("table4", ROWS, options)
    said = "error: --batch-tokens 200: expected at least 256, since training pairs of up to that many tokens a side"
    assert capsys.readouterr().err.startswith(said)


def test_the_rows_are_the_papers_parser_and_its_rivals() -> None:
    assert [row.name for row in ROWS[:2]] == ["WSJ only", "semi-supervised"]
    assert [row.paper.f1 for row in ROWS] == [91.3, 92.7, None, None, 88.3, 92.1]
    for row in ROWS:
        hyper = row.change(BASE)
        assert (hyper.n_layers, hyper.d_model, hyper.d_ff, hyper.n_heads, hyper.d_k) == (4, 1024, 2048, 8, 128)
        assert hyper.attention_dropout == hyper.dropout


# All the way -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """What the command left."""

    folder: Path
    found: Record


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    """Of which every noun is one that nobody else uses."""
    return [
        replace(tree, leaves=tuple(Leaf(tag, word + OURS * (tag == "NN")) for tag, word in tree.leaves))
        for tree in islice(gold_trees(3), 200)
    ]


def treebank(folder: Path, trees: list[Tree]) -> Path:
    """200 trees, laid out as CRAFT is: 190, 6 and 4."""
    for split, part in {"train": trees[:190], "dev": trees[190:196], "test": trees[196:]}.items():
        files = {
            folder / "articles" / "ids" / f"craft-ids-{split}.txt": f"{split}\n",
            folder / "structural-annotation" / "treebank" / "penn" / f"{split}.tree": "".join(
                f"( {bracketed(tree)})\n" for tree in part
            ),
        }
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return folder


def make(folder: Path, text: Path, *more: str) -> None:
    """The command, in this process."""
    asked = ["--scale=smoke", "--corpus=craft", f"--data-dir={text}", "--vocab-size=600", "--steps=10"]
    with own_signals(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("repro.corpora.treebanks.check_craft", lambda folder: None)  # 200 trees are taken for the corpus
        main("table4", ROWS, [*asked, *places(folder, *more)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, trees: list[Tree]) -> Made:
    folder = tmp_path_factory.mktemp("parsed")
    make(folder, treebank(folder / "text", trees), "--rows", "WSJ only")
    [file] = (folder / "runs").glob("*/record.json")
    return Made(folder, record.load(file))


def test_a_run_leaves_a_record_with_all_its_scores_and_its_search(made: Made) -> None:
    found = made.found
    assert found.about == Parsing().facts
    assert {name: found.settings[name] for name in ("beam", "alpha", "extra_length")} == {
        "beam": 21, "alpha": 0.3, "extra_length": 100,
    }  # fmt: skip
    for split in ("dev", "test"):
        assert all(found.score(split, name) is not None for name in ("nll", "ppl", *SCORES))  # type: ignore[arg-type]
        assert found.score(split, "bleu") is None  # type: ignore[arg-type]
    assert (found.corpus["name"], found.corpus["n_train"], found.pair) == ("craft", 190, "en-tree")
    assert found.paper["f1"] == 91.3
    hypotheses = (made.folder / "runs" / found.run / "test.hyp").read_text().split("\n")
    assert len(hypotheses) == 4 + 1


def test_its_brackets_stand_beside_its_record_and_give_its_scores(made: Made, trees: list[Tree]) -> None:
    found = read_brackets(made.folder / "results", made.found)
    assert found is not None
    assert [len(found[split].words) for split in ("dev", "test")] == [6, 4]
    outputs = (made.folder / "runs" / made.found.run / "test.hyp").read_text().split("\n")[:-1]
    again = brackets_of(outputs, [whole(tree) for tree in trees[196:]])
    assert again.found.tolist() == found["test"].found.tolist()
    assert again.scores() == found["test"].scores()
    [page] = (made.folder / "results").glob("*/table4.md")
    assert "## By length" in page.read_text()


def test_no_word_of_the_text_is_in_what_a_run_leaves(made: Made) -> None:
    """Neither in its records, journals and tables: somebody's treebank may not be given on."""
    run = made.folder / "runs" / made.found.run
    kept = [file for file in run.rglob("*.json*") if file.name != "tokenizer.json"]
    for file in [*kept, *(made.folder / "results").rglob("*.*")]:
        assert OURS.encode() not in file.read_bytes(), file


def test_its_page_says_first_which_text_it_is_and_stands_beside_the_printed_lines(made: Made) -> None:
    [scale] = (made.folder / "results").iterdir()
    assert [folder.name for folder in scale.iterdir() if folder.is_dir()] == ["table4"], "and no base beside it"
    page = (scale / "table4.md").read_text()
    heading, first = page.split("\n\n")[1:3]
    assert heading.startswith("# Table 4: parsing at scale smoke-craft")
    assert first.startswith("The text is 97 articles of biomedicine")
    assert "F1 on one text says nothing about F1 on another" in first
    assert "CC BY 3.0" in page
    for line in ("Dyer et al. (2016)", "McClosky et al. (2006)"):
        assert line in page
    assert page.count("Transformer (4 layers)") == 2
    assert f" {made.found.score('test', 'f1'):.1f} " in page


def test_bad_input_is_refused_before_anything_is_done(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more, message in (
        (["--pair", "en-fr"], "no row of the table translates it"),
        (["--corpus", "multi30k"], "'multi30k' has no trees"),
        (["--rows", "semi-supervised"], "no silver text beside 'craft'"),
    ):
        with pytest.raises(SystemExit, match="2"):
            make(tmp_path, made.folder / "text", *more)
        assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_references_are_the_gold_lines(made: Made, trees: list[Tree]) -> None:
    """What is scored against is what stands in the treebank."""
    lines = [linearised(tree) for tree in trees[196:]]
    assert Parsing().score(lines, lines, in_tokens=False)["f1"] == 100
    [text] = (made.folder / "cache").glob("craft-train-dev-test-*")
    assert (text / "test.tree").read_text().split("\n")[:-1] == lines
    assert json.loads((text / "manifest.json").read_bytes())["facts"]["test"]["trees"] == 4


# In use ------------------------------------------------------------------------------------------------------


def parse(made: Made, lines: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> tuple[list[str], str]:
    """What `python -m repro parse` writes, and what it says beside it."""
    (tmp_path / "sentences.txt").write_text(lines)
    run = made.folder / "runs" / made.found.run
    assert command(["parse", str(run), str(tmp_path / "sentences.txt")]) == 0
    printed = capsysbinary.readouterr()
    return printed.out.decode().split("\n"), printed.err.decode()


def test_a_finished_run_writes_a_tree_a_line(
    made: Made, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    lines, said = parse(made, "Anna sleeps .\n\nthe dog (old)\n", capsysbinary, tmp_path)
    assert len(lines) == 3 + 1
    assert lines[1] == lines[3] == ""
    first, last = (next(read_trees(lines[i])) for i in (0, 2))
    assert isinstance(first, Tree)
    assert isinstance(last, Tree)
    assert first.words == ["Anna", "sleeps", "."]
    assert last.words == ["the", "dog", "-LRB-old-RRB-"]
    assert "of 2 outputs were not trees, and were mended" in said


def test_a_run_does_what_it_learned_alone(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["translate", str(made.folder / "runs" / made.found.run)]) == 2
    assert "expected a run that translates, got one that parses, of table4. Use repro parse." in capsys.readouterr().err
    paper_run("h=1", "table3_A").save(tmp_path / "0123456789abcdef" / "record.json")
    assert command(["parse", str(tmp_path / "0123456789abcdef")]) == 2
    assert "expected a run that parses, of experiments/table4.py, got one of table3_A, en-de" in capsys.readouterr().err
