"""The README of a scale and that of all scales: what they say, where links lead, each verdict at its own scale."""

import re
import shutil
from dataclasses import replace
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paper_runs import around, changed, paper_run
from table_records import both, run

from repro.claims.blocks import ALPHA
from repro.claims.catalogue import CLAIMS, STATEMENTS
from repro.claims.decisions import Outcome
from repro.claims.evidence import Evidence
from repro.claims.judge import Judged
from repro.cli import report
from repro.pages import build, readme
from repro.pages.readme import _averaging, found_in, page_of_all
from repro.render.markup import markdown
from repro.render.page import Column, Heading, Listing, Page, Table, plain
from repro.results.details import OnText, Worth, with_comparisons
from repro.results.frame import Listed, ResultSet, note_rows, table
from repro.results.record import Record, path

# Of a scale


def fill(results: Path, table: str = "table3_B", *, scale: str = "laptop", bleu: float = 51.0, **other: Any) -> None:
    """The base with 60 BLEU and two rows that are worse, the first unless told, with the seeds that are judged."""
    here: Any = {"scale": scale, "settings": paper_run().settings | {"claim": "the sign of large effects"}}
    paper = {"ppl": 5.0, "bleu": 25.0, "params": None}
    records = around("base", "base", 60.0, -1, **here)
    for i, score in ((0, bleu), (1, 57.0)):
        d_k = 16 * (i + 1)
        records += around(table, f"d_k={d_k}", score, i, hyper=changed(d_k=d_k), paper=paper, **here)
    for record in records:
        replace(record, **other).save(path(results, record))


def made(results: Path) -> dict[Path, str]:
    return build.build_scale(ResultSet.read(results / "laptop"))


def test_it_says_what_was_judged_and_every_link_and_picture_is_there(tmp_path: Path) -> None:
    fill(tmp_path)
    text = made(tmp_path)[tmp_path / "laptop/README.md"]
    assert "15 runs of 3 rows" in text
    assert "shows **the sign of large effects**" in text
    judged = r"- \*\*sign as printed\*\*, \d claims?: .*Keys of size"
    assert re.search(judged, text.partition("## Tables")[0]), "nine BLEU and 0.9 nats are beyond all noise"
    assert "![" not in text, "no picture is there"
    whole = made(tmp_path)[tmp_path / "laptop/table3.md"]
    assert whole.index("**Worse than the base**, in BLEU on dev: d_k=16") < whole.index("| row")
    assert re.search(r"\| \(B\) d_k=16 .* sign as printed +\|", whole)
    figures = tmp_path / "laptop" / "figures"
    figures.mkdir()
    for name in ("softmax_saturation", "curves_table3_B", "differences", "figure2_attention"):
        (figures / f"{name}.svg").touch()
    written = build.write_scale(ResultSet.read(tmp_path / "laptop"))
    text = (tmp_path / "laptop/README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not (tmp_path / "laptop" / link).exists()] == [
        "../../docs/usage.md#how-to-read-the-tables"
    ]
    assert {"claims.md", "table3.md", "figures.md", "figures/differences.svg"} <= set(links)
    assert "table3_B.md" not in links, "a published part of Table 3 stands on that table's page"
    assert "softmax_saturation" not in text, "two pictures are enough on this page"
    assert "4 pictures, those of the paper first: [figures.md](figures.md)." in text
    gallery = (tmp_path / "laptop/figures.md").read_text("utf-8")
    assert "A page of this scale shows **the sign of large effects**" in gallery.partition("![")[0]
    shown = re.findall(r"\(figures/(\w+)\.svg\)", gallery)
    assert shown == ["figure2_attention", "softmax_saturation", "differences", "curves_table3_B"]
    assert "How the rows of table3_B learned" in gallery
    assert tmp_path / "laptop/README.md" in written


def test_a_page_of_one_run_says_so_and_that_others_are_missing(tmp_path: Path) -> None:
    record = paper_run(scale="laptop", settings=paper_run().settings | {"claim": "the sign of large effects"})
    record.save(path(tmp_path, record))
    note_rows(tmp_path / "laptop", {("table3_E", "learned"): Listed(0, paper_run().paper)})
    texts = made(tmp_path)
    assert "1 run of 1 row, 1 minute in all" in texts[tmp_path / "laptop/README.md"]
    mine = ResultSet.read_own(tmp_path / "laptop", tmp_path / "nowhere", [])
    whole = build.build_scale(mine)[tmp_path / "laptop/table3.md"]
    assert "## Notes\n\n- No finished run to show: learned.\n" in whole, "one's own pages are whole"


def test_a_page_of_exploration_says_so_on_top_of_all_its_tables(tmp_path: Path) -> None:
    # the words of a preset that was renamed since: they are of what evidence would show
    settings = paper_run().settings | {"claim": "the order of rows"}
    paper: Any = {"ppl": 5.0, "bleu": 25.0, "params": None}
    record = paper_run("d_k=16", "table3_B", scale="laptop", settings=settings, hyper=changed(d_k=16), paper=paper)
    record.save(path(tmp_path, record))
    texts = {file.name: text for file, text in made(tmp_path).items() if file.suffix == ".md"}
    assert "All of it is **exploration**: no run counts as evidence." in texts["README.md"]
    for name in ("README.md", "table3.md"):
        assert "the order of rows" not in texts[name]
        assert "xploration" in texts[name].partition("| row")[0]
    assert texts["table3.md"].count("| row ") == 1, "its first table says enough"
    for end in ("md", "tex"):  # from a time when parts had pages
        (tmp_path / f"laptop/table3_B.{end}").write_text(texts["table3.md"], "utf-8")
        assert build.build_all(tmp_path)[tmp_path / f"laptop/table3_B.{end}"] == ""
    shutil.rmtree(tmp_path / "laptop")
    fill(tmp_path, "lab_parts", claims=None)
    found = r"- \[lab_parts\]\(lab_parts.md\): \*\*Worse than the base\*\*, in BLEU on dev: d_k=16 −9.0 ±"
    assert re.search(found, made(tmp_path)[tmp_path / "laptop/README.md"].partition("## ")[0]), "no verdict says it"
    shutil.rmtree(tmp_path / "laptop")
    fill(tmp_path)
    texts = {file.name: text for file, text in made(tmp_path).items() if file.suffix == ".md"}
    assert "A table of this scale shows the sign of large effects." in texts["table3.md"]
    assert "xploration" not in texts["table3.md"]


def spread(row: str, i: int, seed: int) -> Record:
    """Its standard deviations are 1.58 BLEU and 0.0158 nats, and by the mean of checkpoints twice and half of that."""
    by, nll = seed - 11, 1.0 + i / 10
    mean = exp(nll + 0.005 * by)
    return both(row, seed, 50.0 + 10 * i**2 + by, 80.0 - 10 * i + 2 * by, ppl=mean, last_ppl=exp(nll + 0.01 * by))


def test_what_averaging_does_to_the_spread_and_the_order_of_rows_is_one_sentence() -> None:
    runs = [spread(row, i, seed) for i, row in enumerate(("base", "h=1", "h=4")) for seed in range(9, 14)]
    others = [spread("h=16", 1, 9), spread("base", 0, 8), run("h=1", 14)]  # too few seeds, and seeds not declared
    assert _averaging([*runs, *others]) == (
        "Scored by the mean of the last checkpoints instead of the last one, runs of a row differ between seeds 9 to "
        "13 less in log PPL (standard deviation 0.016 → 0.008) and not less in BLEU (standard deviation 1.58 → 3.16); "
        "the two orders of 3 rows of Table 3 have a rank correlation of 1.00 in log PPL and −1.00 in BLEU."
    )
    assert _averaging(runs[1:]) == "", "of two rows"


def test_the_page_of_laptop_says_that_its_text_was_chosen_where_the_others_are_published(tmp_path: Path) -> None:
    fill(tmp_path)
    said = re.compile(
        r"C31b served to choose that text, and .* no evidence of their own\. \[More\]\(\.\./README\.md\)\."
    )
    assert not said.search(made(tmp_path)[tmp_path / "laptop/README.md"])
    (tmp_path / "laptop-20000-pairs").mkdir()
    assert said.search(made(tmp_path)[tmp_path / "laptop/README.md"])


# Over all scales


def at(scale: str, **verdicts: Outcome) -> Any:
    """A scale that judged these claims of the paper and no other."""
    return SimpleNamespace(
        runs=SimpleNamespace(scale=scale, claim="the sign of large effects"),
        judged=[Judged(claim=one, verdict=verdicts.get(one.id, "not judged"), reason="") for one in CLAIMS],
        stated=(),
        frames={},
        evidence=Evidence(),
        result_set=SimpleNamespace(rows={}, everything=[], own=False, folder=Path(scale)),
    )


def changed_to(before: Any, **of: Any) -> Any:
    return SimpleNamespace(**vars(before) | of)


LAPTOP = at("laptop", C27a="opposite sign", C28b="undetermined", C29a="sign as printed", C31b="undetermined")
OF_CAPTIONS: Any = {"C27a": "opposite sign", "C28b": "undetermined"}
CAPTIONS = at("captions-bf16", **OF_CAPTIONS, **dict.fromkeys(("C29a", "C30f", "C31b"), "sign as printed"))
EXPLORED = at("captions-6000-updates", C01a="consistent", C05="holds here")


def shown(*scales: Any) -> Page:
    made = page_of_all(scales)
    assert made
    return made


def grid(made: Page) -> dict[str, dict[str, str]]:
    """The table by claim, each with its cells by their headings."""
    table = next(block for block in made.blocks if isinstance(block, Table))
    names, *others = table.columns
    return {
        plain(name): {column.heading: plain(column.texts[i]) for column in others} for i, name in enumerate(names.texts)
    }


def items(made: Page, heading: str) -> list[str]:
    """The lines of the list below a heading."""
    after = next(i for i, of in enumerate(made.blocks) if isinstance(of, Heading) and plain(of.words) == heading)
    listing = next(block for block in made.blocks[after:] if isinstance(block, Listing))
    return [plain(item) for item in listing.items]


def test_a_verdict_stands_at_its_own_scale() -> None:
    cells = {claim: (line["laptop"], line["captions-bf16"]) for claim, line in grid(shown(LAPTOP, CAPTIONS)).items()}
    few = "too few runs"
    assert cells.pop("C28c") == ("needs captions", few), "what no scale judged stands there, too"
    others = [(few, few), ("needs captions", few), ("needs paper", "needs paper")]
    assert {claim: of for claim, of in cells.items() if of not in others} == {
        "C27a": ("opposite sign", "opposite sign"),
        "C28b": ("undetermined", "undetermined"),
        "C29a": ("sign as printed", "sign as printed"),
        "C30f": ("needs captions", "sign as printed"),
        "C31b": ("undetermined", "sign as printed"),
    }
    said = markdown(shown(LAPTOP, CAPTIONS))
    assert re.search(r"\| \*\*opposite sign\*\* +\| \*\*opposite sign\*\* +\|", said)
    assert "**undetermined** |" not in said, "only what is shown is marked"
    assert "all you need, here" not in said, "no scale has a ladder"
    assert "how often the text is seen" not in said
    mine = changed_to(LAPTOP, result_set=changed_to(LAPTOP.result_set, own=True))
    for made, to_project in ((said, ".."), (markdown(shown(mine)), "../..")):
        assert f"]({to_project}/docs/claims.md)" in made


def test_what_dropout_and_smoothing_are_worth_on_little_text_and_much_is_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/text_sizes.svg").touch()
    drawn = changed_to(LAPTOP, result_set=changed_to(LAPTOP.result_set, folder=tmp_path))
    made = markdown(shown(CAPTIONS, drawn))
    assert re.search(r"## What a row .* seen\n\n!\[text_sizes\]\(laptop/figures/text_sizes.svg\)\n", made)
    for signs in ((1, -1, -1), (1, 1, 1)):
        on = [OnText(3_000, Worth(1, (sign, None), (0.0, None)), None) for sign in signs]
        monkeypatch.setattr(readme, "on_texts", lambda records, on=on: {"eps_ls=0.0": on, "P_drop=0.0": on})
        said = "## The sign of smoothing and of dropout depends on how often the text is seen" in markdown(shown(drawn))
        assert said == (-1 in signs)
    assert "served to choose" not in made, "no other text was tried"
    tried = changed_to(EXPLORED, runs=changed_to(EXPLORED.runs, scale="laptop-20000-pairs"))
    assert "C27a, C30a, C30e, C31a and C31b served to choose that text" in markdown(shown(drawn, tried))


def system(row: str, table: str, seed: int, seconds: float, *nll: float, family: int = 26) -> Record:
    """A run of 40 updates, with these losses after 10 and 40."""
    one, curve = paper_run(row, table, seed=seed, scale="laptop"), {"step": [10, 40], "nll": [*nll]}
    model = f"AuthenticAMD, family {family}, model 2, stepping 1"
    cpu: Any = {**dict.fromkeys(("device", "cpu"), "AMD EPYC"), "cpu_model": model}
    cost: Any = {"steps": 40, "train_seconds": seconds, "flops": 2e9 * nll[0]}
    return replace(one, curves={"train": curve, "dev": curve}, cost=one.cost | cost, stamp=one.stamp | cpu)  # type: ignore


def test_systems_before_the_transformer_stand_beside_it_with_what_they_cost() -> None:
    base = [system("base", "base", seed, 0.4 * seed, 5.0, 1.0, family=25) for seed in (1, 2, 3)]
    rivals = [system(row, "ladder", 1, 0.2, 4.0, end) for row, end in (("ByteNet", 2.0), ("ConvS2S", 0.5))]
    longer = [system("ByteNet, 3 x updates", "ladder_long", 1, 0.6, 3.0, 0.5)]
    frames = {of[0].table: with_comparisons(table(of, base=base), [*base, *of]) for of in (rivals, longer)}
    aligned = [Judged(claim=one, verdict="not judged", reason="") for one in STATEMENTS if one.id == "S26c"]
    everything = changed_to(LAPTOP.result_set, everything=[*base, *rivals, *longer])
    said = markdown(shown(changed_to(LAPTOP, frames=frames, result_set=everything, stated=aligned)))
    assert "**laptop**: **Too few seeds to tell**, in BLEU on dev: ByteNet +0.0 (paper +0.0), ConvS2S +0.0" in said
    lines = [[cell.strip() for cell in line.split("|")] for line in said.split("\n") if "EPYC" in line]
    assert [[line[1], *line[-5:-1]] for line in lines if "base" not in line] == [
        ["ByteNet", "80", "5", "AMD EPYC (family 26, model 2)", "above base from 25 on"],
        ["ConvS2S", "80", "5", "AMD EPYC (family 26, model 2)", "below base throughout"],
        ["ByteNet, 3 x updates", "60", "15", "AMD EPYC (family 26, model 2)", "below base throughout"],
    ]
    assert lines[0][-5:-1] == ["100", "10", "AMD EPYC (family 25, model 2)", ""], "of the fastest of three"
    assert "S26c, The Transformer is better than soft alignment: not judged at laptop." in said


def test_only_scales_that_settle_something_about_rows_have_a_column_small_ones_first() -> None:
    made = shown(CAPTIONS, EXPLORED, at("laptop-5000-pairs", C28b="sign as printed"), LAPTOP)
    scales = ["laptop", "laptop-5000-pairs", "captions-bf16"]  # the first judged more than the other of its size
    assert [*grid(made)["C29a"]] == ["table", "what the paper says", *scales]
    assert "[captions-6000-updates](captions-6000-updates/README.md)" in markdown(made)
    assert page_of_all([EXPLORED]) is None
    assert page_of_all([]) is None


def test_each_scale_has_its_counts_and_links() -> None:
    made = shown(LAPTOP, CAPTIONS)
    laptop, captions = items(made, "What came of the paper's claims, scale by scale")
    assert laptop == (
        "laptop, which shows the sign of large effects: sign as printed 1, opposite sign 1, undetermined 2. Each with "
        "its numbers."
    )
    assert ": sign as printed 3, opposite sign 1, undetermined 1." in captions
    said, alone = markdown(made), markdown(shown(LAPTOP))
    assert f"to {100 * ALPHA:g} % at each scale, and so to {200 * ALPHA:g} % over these 2 together" in said
    assert f"to {100 * ALPHA:g} % at each scale. A verdict" in alone
    for link in ("laptop/README.md", "laptop/claims.md", "captions-bf16/claims.md", "../docs/claims.md"):
        assert f"]({link})" in said


def test_each_claim_is_in_one_line_of_what_came_out() -> None:
    assert items(shown(LAPTOP, CAPTIONS), "What came out") == [
        "sign as printed at every scale that judged them: 2 claims, 1 of them judged at more than one: Keys of size 16 "
        "are worse than of size 64; A width of 1,024 is better than 512.",
        "opposite sign at every scale that judged them: 1 claim, 1 of them judged at more than one: "
        "Label smoothing of 0.1 hurts perplexity.",
        "undetermined at every scale that judged them: 1 claim, 1 of them judged at more than one.",
        "sign as printed at one scale, undetermined at another: 1 claim: No dropout is worse than 0.2.",
    ]
    against = at("paper", C29a="contradicted", C27a="reproduced")
    assert items(shown(LAPTOP, CAPTIONS, against), "What came out")[-2:] == [
        "contradicted at one scale, sign as printed at another: 1 claim: Keys of size 16 are worse than of size 64.",
        "sign as printed at one scale, undetermined at another: 1 claim: No dropout is worse than 0.2.",
    ]


# In the folder of results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    fill(folder)
    fill(folder, scale="captions", bleu=69.0)
    return folder


def test_report_writes_it_check_finds_it_missing_and_one_by_hand_stays(results: Path) -> None:
    assert report.report(["--results", str(results)]) == 0
    whole = results / "README.md"
    [line] = [line for line in whole.read_text("utf-8").split("\n") if line.startswith("| C29a ")]
    assert [cell.strip() for cell in line.split("|")][-3:-1] == ["**sign as printed**", "**opposite sign**"]
    assert report.report(["--results", str(results), "--check"]) == 0
    whole.unlink()
    assert report.report(["--results", str(results), "--check"]) == 1
    whole.write_text("My runs of November.\n", "utf-8")
    assert report.report(["--results", str(results)]) == 0
    assert report.report(["--results", str(results), "--check"]) == 0
    assert whole.read_text("utf-8") == "My runs of November.\n"


def test_without_a_settled_claim_an_old_page_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    record = paper_run(scale="laptop")
    record.save(path(results, record))
    whole = results / "README.md"
    assert report.report(["--results", str(results)]) == 0
    assert not whole.exists()
    whole.write_text(markdown(shown(LAPTOP)), "utf-8")
    capsys.readouterr()
    assert report.report(["--results", str(results), "--check"]) == 1
    assert "-# What came of the paper's claims" in capsys.readouterr().out
    assert report.report(["--results", str(results)]) == 0
    assert not whole.exists()


def test_the_findings_of_a_page_stand_before_its_first_table() -> None:
    rows = Table((Column("", "row", ["h=1"]),))
    assert found_in(Page("a test", (Listing(("h=1 is worse",)), rows, Listing(("a note",))))) == ["h=1 is worse"]
