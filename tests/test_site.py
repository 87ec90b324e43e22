"""The docs as a site: every page has a place, links out of docs/ lead to pages, nothing is asked of another server."""

import html
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from benchmark_files import opened

ROOT = Path(__file__).parent.parent
MADE = {"explorables.html", "report-laptop.html", "report-captions-bf16.html"}  # of the site, by docs/site_build.py
REFERENCES = re.compile(r'<(?:[^>"]|"[^"]*")*?\s(?:src|href)="(?!\w+:|/|#)([^"#?]+)')  # the relative ones
NEEDS = "needs the extra [docs]: pip install -c constraints.txt -e '.[docs]'"


@pytest.fixture
def site_build() -> Any:
    """The hooks of the site, as MkDocs imports them."""
    pytest.importorskip("mkdocs", reason=NEEDS)
    return opened("site_build", "docs")


def leaves(entry: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(one)


def test_every_page_of_docs_has_its_place() -> None:
    # without MkDocs: who adds a page hears of it from the tests
    text = (ROOT / "mkdocs.yml").read_text("utf-8").replace("!ENV ", "")  # MkDocs' own
    listed = list(leaves(yaml.safe_load(text)["nav"]))
    assert len(listed) == len(set(listed))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - set(listed) == set(), "give it a place in mkdocs.yml"


def test_raw_html_of_a_page_leads_to_what_lies_beside_it() -> None:
    # without MkDocs, which follows the links of Markdown alone; pages stand in one folder, with `.html` at their end
    there = MADE | {file.name for file in (ROOT / "docs").iterdir()}
    there |= {page.with_suffix(".html").name for page in (ROOT / "docs").glob("*.md")}
    for page in (ROOT / "docs").glob("*.md"):
        assert [one for one in REFERENCES.findall(page.read_text("utf-8")) if one not in there] == [], page.name


def test_links_are_followed_and_code_is_left_alone(site_build: Any) -> None:
    class Files:
        src_uris = ("reference/repro/model/loss.md",)

    def led(text: str, path: str) -> str:
        return str(site_build.outside_code(text, lambda line: site_build.with_links(line, path, Files())))

    assert led("[a](../README.md#x) [b](wmt14.md)", "docs/claims.md") == "[a](start.md#x) [b](wmt14.md)"
    assert led("[a](docs/wmt14.md) [b](https://x.y/docs/z)", "README.md") == "[a](wmt14.md) [b](https://x.y/docs/z)"
    assert led("[a](../../docs/claims.md)", "results/laptop/claims.md") == "[a](../../claims.md)"
    of_module = "[`repro/model/loss.py`](reference/repro/model/loss.md)"
    assert led("see `repro/model/loss.py` and `repro/gone.py`", "docs/log.md") == f"see {of_module} and `repro/gone.py`"
    assert led("```\n[a](../README.md)\n```\n[a](../README.md)", "docs/log.md").count("../README.md") == 1


def test_lists_and_tables_get_the_empty_line_that_this_markdown_asks_for(site_build: Any) -> None:
    text = ["words:", "- one", "- two", "  more of two", "- three", "after", "| a |", "|---|", "```", "x", "- y", "```"]
    assert site_build.spaced(text) == [
        *("words:", "", "- one", "- two", "  more of two", "- three", "after", "", "| a |", "|---|", ""),
        *("```", "x", "- y", "```"),
    ]


def test_what_belongs_to_a_numbered_item_stays_in_it(site_build: Any) -> None:
    text = ["1. one", "", "   ```", "   x", "   ```", "2. two", "", "   more", "after", "   code"]
    assert site_build.indented(text) == [
        *("1. one", "", "    ```", "    x", "    ```", "2. two", "", "    more", "after", "   code")
    ]


def test_a_link_to_nothing_is_a_warning_which_ends_a_strict_build(
    site_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("[here](../LICENSE) and [nowhere](../gone.md)", "utf-8")
    (tmp_path / "LICENSE").touch()
    monkeypatch.setattr(site_build, "ROOT", tmp_path)
    with caplog.at_level(logging.WARNING, "mkdocs"):
        assert site_build.brought_in(()) == ["LICENSE"]
    assert "docs/a.md: expected a file behind the link ../gone.md" in caplog.text


@pytest.mark.slow
def test_the_site_is_built_strictly_and_asks_nobody(
    site_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with two modules of the reference: all of them are what `tox -e docs` builds
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.chdir(ROOT)
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
    assert config.strict
    [hooks] = config.hooks.values()
    monkeypatch.setattr(hooks, "modules", lambda: ["repro/model/attention.py", "repro/model/loss.py"])
    monkeypatch.setattr(hooks, "report", lambda scale: f"<p>{scale}</p>")  # `tests/web` opens reports
    build(config)
    pages = {page.relative_to(tmp_path / "site").as_posix(): page for page in (tmp_path / "site").rglob("*.html")}
    assert pages["report-captions-bf16.html"].read_text("utf-8") == "<p>captions-bf16</p>"
    assert {"index.html", "start.html", "gpu.html", "results/laptop/claims.html", "explorables.html"} <= pages.keys()
    for name, page in pages.items():
        asked = re.findall(
            r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]*)"', page.read_text()
        )
        assert asked == [], name
        broken = [
            link
            for link in REFERENCES.findall(page.read_text("utf-8"))
            if not (page.parent / unquote(html.unescape(link))).exists() and "reference/" not in link
        ]
        assert broken == [], name
    mapped = pages["paper_map.html"].read_text("utf-8")
    assert '<a href="reference/repro/model/attention.html"><code>repro/model/attention.py</code></a>' in mapped
    of_module = html.unescape(re.sub("<[^>]+>", "", pages["reference/repro/model/attention.html"].read_text("utf-8")))
    assert "How well each key answers each query" in of_module
    assert pages["release.html"].read_text("utf-8").count("<ol>") == 1
    assert 'id="explore-rate"' in pages["explorables.html"].read_text("utf-8")


# docs/front.py: what README says was found is what the records say


@pytest.fixture(scope="module")
def front() -> Any:
    """The script as a module, which reads the records once."""
    return opened("front", "docs")


def test_the_first_page_is_what_the_records_say(front: Any) -> None:
    for file, picture_at in front.PAGES.items():
        text = file.read_text("utf-8")
        assert front.page(text, picture_at) == text, "run docs/front.py"
    assert (ROOT / "docs" / "front.svg").read_text("utf-8") == front.picture(), "run docs/front.py"


def test_the_readme_is_read_in_minutes() -> None:
    words = (ROOT / "README.md").read_text("utf-8").split()
    assert len(words) <= 1_200
    assert words.index("found") < 120, "what was found comes first"


def test_a_sentence_that_the_records_contradict_is_refused(front: Any) -> None:
    assert front.says("laptop", "table3_C/N=2", -1).startswith("−")
    assert front.says("laptop", "table3_C/N=2", -1, amount=True)[0].isdigit()
    for side in (0, 1):
        with pytest.raises(ValueError, match="README says that table3_C/N=2 at laptop"):
            front.says("laptop", "table3_C/N=2", side)
    with pytest.raises(ValueError, match="expected runs of table3_C/N=3"):
        front.says("laptop", "table3_C/N=3", -1)
    with pytest.raises(ValueError, match="README calls C30a 'undetermined' at laptop"):
        front.require("C30a", "undetermined", "laptop")


def test_a_row_is_compared_with_the_base_of_its_own_seed(front: Any) -> None:
    found = front.difference("captions-bf16", "table3_A/h=1")
    assert found.paper == pytest.approx(24.9 - 25.8)
    assert found.side == 0
    assert front.Difference(-1.0, None, None).side == 0, "below three seeds nothing is shown"


def test_two_scales_that_contradict_each_other_leave_a_claim_open(front: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = {
        "laptop": {"a": "sign as printed", "b": "undetermined", "c": "sign as printed", "d": "not judged"},
        "captions-bf16": {"a": "undetermined", "b": "undetermined", "c": "opposite sign", "d": "not judged"},
    }
    monkeypatch.setattr(front, "verdicts", at.__getitem__)
    assert front.counted() == {"sign as printed": 1, "opposite sign": 0, "undetermined": 2}
