"""The page of a scale: what stands on it, what it links to, and that it is made at once."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import around, changed, paper_run

from repro.pages import build
from repro.results.frame import Listed, ResultSet, note_rows
from repro.results.record import path


def fill(results: Path, table: str = "table3_B", **other: Any) -> None:
    """The base and two rows that are worse, with the seeds that are judged."""
    here: Any = {"scale": "laptop", "settings": paper_run().settings | {"claim": "the sign of large effects"}}
    paper = {"ppl": 5.0, "bleu": 25.0, "params": None}
    records = around("base", "base", 60.0, -1, **here)
    for i, bleu in ((0, 51.0), (1, 57.0)):
        d_k = 16 * (i + 1)
        records += around(table, f"d_k={d_k}", bleu, i, hyper=changed(d_k=d_k), paper=paper, **here)
    for record in records:
        replace(record, **other).save(path(results, record))


def made(results: Path) -> dict[Path, str]:
    return build.texts(build.build_scale(ResultSet.read(results / "laptop")))


def test_every_link_and_picture_is_there(tmp_path: Path) -> None:
    fill(tmp_path)
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


def test_it_says_what_was_judged(tmp_path: Path) -> None:
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


def test_a_page_of_one_run_says_so_and_that_others_are_missing(tmp_path: Path) -> None:
    record = paper_run(scale="laptop", settings=paper_run().settings | {"claim": "the sign of large effects"})
    record.save(path(tmp_path, record))
    note_rows(tmp_path / "laptop", {("table3_E", "learned"): Listed(0, paper_run().paper)})
    texts = made(tmp_path)
    assert "1 run of 1 row, 1 minute in all" in texts[tmp_path / "laptop/README.md"]
    mine = ResultSet.read_own(tmp_path / "laptop", tmp_path / "nowhere", [])
    whole = build.texts(build.build_scale(mine))[tmp_path / "laptop/table3.md"]
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
    (tmp_path / "laptop/table3_B.tex").touch()  # from a time when parts had pages
    assert build.build_all(tmp_path)[tmp_path / "laptop/table3_B.tex"] == ""
    shutil.rmtree(tmp_path / "laptop")
    fill(tmp_path, "lab_parts", claims=None)
    found = r"- \[lab_parts\]\(lab_parts.md\): \*\*Worse than the base\*\*, in BLEU on dev: d_k=16 −9.0 ±"
    assert re.search(found, made(tmp_path)[tmp_path / "laptop/README.md"].partition("## ")[0]), "no verdict says it"
    shutil.rmtree(tmp_path / "laptop")
    fill(tmp_path)
    texts = {file.name: text for file, text in made(tmp_path).items() if file.suffix == ".md"}
    assert "A table of this scale shows the sign of large effects." in texts["table3.md"]
    assert "xploration" not in texts["table3.md"]
