"""The frame of a report: what it lets in, what it escapes, and that sections share nothing by accident."""

import base64
import hashlib
import re
from html import unescape

import pytest
from markupsafe import Markup
from report_records import unpacked

from repro.render.text import shown
from repro.web import report
from repro.web.report import Section, asset, packed_in_html, report_html

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \u202e \ud800 ]]> & ' \" `"


def scripts(page: str) -> list[tuple[str, str]]:
    """The scripts of a page as a browser finds them, each up to the first end tag: id or "", and its text."""
    found = re.findall(r"<script\b([^>]*)>(.*?)</script", page, re.DOTALL | re.IGNORECASE)
    assert [attributes for attributes, _ in found if "src" in attributes] == []
    return [("".join(re.findall(' id="([^"]*)"', attributes)), text) for attributes, text in found]


def section(key: str = "one", **other: object) -> Section:
    return Section(**{"key": key, "title": "One", "body": Markup("<p>Said.</p>"), **other})  # type: ignore[arg-type]


def made(*sections: Section) -> str:
    return report_html(sections, title="A report", origin="Made by a test.")


def test_data_comes_out_as_it_went_in_and_ends_no_script() -> None:
    value = {"text": HOSTILE, "numbers": [1, 2.5, None]}
    written = packed_in_html(value)
    assert unpacked(written) == value
    assert re.fullmatch("[A-Za-z0-9+/]+=*", written)
    assert packed_in_html(value) == written, "neither the time nor a name is in it"
    page = made(section(data=value, csv={"a.csv": HOSTILE}))
    of = dict(scripts(page))
    assert unpacked(of["data-one"]) == {**value, "text": shown(HOSTILE)}
    assert unpacked(of["csv-one"]) == {"a.csv": shown(HOSTILE)}
    assert len(scripts(page)) == 3, "data, numbers, the frame"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed_in_html([number])


def test_titles_and_names_are_text_wherever_they_stand() -> None:
    page = report_html([section(title="<b>", csv={"<i>": ""})], title="<u>", lead="<s>", origin="<q>")
    assert [tag for tag in ("<b>", "<i>", "<u>", "<s>", "<q>") if tag in page] == []
    assert page.count("&lt;b&gt;") == 2, "the heading and the navigation"


def test_control_characters_are_written_as_escapes_everywhere() -> None:
    name, called = "cor\x1b[31mpus\u202e\u2066x\x9b", "cor\\x1b[31mpus\\u202e\\u2066x\\x9b"
    chart = {"title": name, "data": {"values": [{name: [name]}]}}
    one = section(
        title=name,
        body=Markup("<p>{}</p>").format(name),
        data={"names": [(name, 1)], name: {"n": name}},
        csv={name: f"{name},1\n\t"},
        folded={"rows": Markup("<i>{}</i>").format(name)},
        charts={"cost": chart},
    )
    page = report_html([one], title=name, lead=name, origin=name)
    of = dict(scripts(page))
    values = [unpacked(of[id]) for id in ("data-one", "csv-one", "folded-one", "charts")]
    assert values[0] == {"names": [[called, 1]], called: {"n": called}}
    assert values[1] == {called: f"{called},1\n\t"}
    for text in (page, *map(repr, values)):
        assert not re.search("[\x1b\x9b\u202a-\u202e\u2066-\u2069]", text)
    assert page.count(called) == 9, "title twice, lead, navigation, heading, body, a file twice, origin"


def test_a_script_stands_once_and_the_policy_names_each_by_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"own.js": "one;", "other.js": "two;"}
    monkeypatch.setattr(report, "asset", lambda name: texts.get(name) or asset(name))
    page = made(section(script="own.js"), section("two", script="own.js"), section("three", script="other.js"))
    found = [text for _, text in scripts(page)]
    assert found == [asset(report.FRAME), "one;", "two;"]
    [allowed] = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    hashes = re.findall("sha256-[^']+", unescape(allowed))
    # printf 'one;' | openssl dgst -sha256 -binary | base64
    assert hashes[1] == "sha256-Qta+ERNP5WSy4v3M/rQ5eePS4Iop9L1hpfLBtWEjtlM="
    assert len(hashes) == 3
    assert unescape(allowed).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in allowed


def test_charts_bring_their_library_once_and_nothing_else_does() -> None:
    one = section(charts={"cost": {"mark": "point"}}, body=Markup('<div class="chart" data-chart="one/cost"></div>'))
    plain, with_charts = made(section()), made(one, section("two", charts={"cost": {"mark": "bar"}}))
    assert len(plain) < 50_000
    assert len(with_charts) < 500_000
    of = dict(scripts(with_charts))
    library = unpacked(of["library"])
    assert "vegaEmbed" in library, "packed, until a chart is looked at"
    assert not any(len(text) > 100_000 for name, text in scripts(with_charts) if name != "library")
    assert f"sha256-{base64.b64encode(hashlib.sha256(library.encode()).digest()).decode()}" in unescape(with_charts)
    charts = unpacked(of["charts"])
    assert charts == {"one/cost": {"mark": "point"}, "two/cost": {"mark": "bar"}}


def test_a_section_that_cannot_stand_in_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a body that was escaped"):
        section(body="<b>")
    with pytest.raises(FileNotFoundError):
        made(section(script="nowhere.js"))
