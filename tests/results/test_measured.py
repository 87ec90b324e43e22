"""Published translations are scored where they are, and refused with a sentence where they are not."""

import gzip
from pathlib import Path

import pytest

from repro.decoding.bleu import sacrebleu_score
from repro.pages.measured import outputs_page, outputs_sheet
from repro.render.markup import markdown
from repro.results.measured import Outputs2017, found_outputs, load, save, score_outputs

WORDS = ["der", "Hund", "läuft", "heute", "sehr", "schnell", "nach", "Hause", "und", "die", "Katze", "schläft"]
REFERENCES = [" ".join(WORDS[: 4 + i]) for i in range(8)]
SOURCES = [" ".join("abcdefghijkl"[: 8 - i]) for i in range(8)]  # the shortest last


def write(folder: Path, **lines: list[str]) -> None:
    for name, of in {"en": SOURCES, "ref.de": REFERENCES, **lines}.items():
        (folder / f"newstest2017.{name}.gz").write_bytes(gzip.compress("".join(f"{x}\n" for x in of).encode()))


def test_each_is_scored_whole_and_by_quarter(tmp_path: Path) -> None:
    wrong = [*REFERENCES[:6], "ganz falsch ist das", "auch das ist falsch"]  # of the shortest sources
    (tmp_path / "outputs_newstest2017_ende").mkdir()
    write(tmp_path / "outputs_newstest2017_ende", **{"hyp.rnn-one.de": REFERENCES, "hyp.transformer-other.de": wrong})
    scored = score_outputs(found_outputs(tmp_path))
    assert [(one.kind, one.toolkit) for one in scored.systems] == [("rnn", "one"), ("transformer", "other")]
    one, other = scored.systems
    assert [one.bleu, *one.quarters] == pytest.approx([100] * 5)
    assert other.bleu == pytest.approx(sacrebleu_score(wrong, REFERENCES, "de").bleu, abs=1e-9)
    assert other.quarters[0] < 10
    assert other.quarters[1:] == pytest.approx([100] * 3)
    assert load(tmp_path, Outputs2017) is None
    save(tmp_path, scored)
    assert load(tmp_path, Outputs2017) == scored
    page = markdown(outputs_page(scored))
    assert "8 sentences" in page
    assert outputs_sheet(scored).split("\n")[1].startswith("rnn,one,100")
    file = tmp_path / "newstest2017" / "scores.json"
    file.write_text(file.read_text().replace('"rnn"', '"cnn"'))
    with pytest.raises(ValueError, match=r"edited by hand or damaged.*run experiments/outputs_2017\.py again"):
        load(tmp_path, Outputs2017)


def test_what_is_not_there_or_not_parallel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)
    for place, looked in ((None, "looked in no folder: none is named"), (tmp_path, f"looked in {tmp_path}")):
        with pytest.raises(FileNotFoundError, match=rf"newstest2017: expected .* {looked}\. They are the outputs"):
            found_outputs(place)
    write(tmp_path, **{"hyp.cnn-x.de": REFERENCES[:-1]})
    with pytest.raises(ValueError, match=r"has 7 lines, .* has 8; line i must translate line i"):
        score_outputs(found_outputs(tmp_path))
    write(tmp_path, **{"hyp.lstm-y.de": REFERENCES, "hyp.cnn-x.de": REFERENCES})
    with pytest.raises(ValueError, match=r"hyp\.lstm-y\.de.*: expected a kind of rnn, cnn, transformer .*got 'lstm'"):
        score_outputs(found_outputs(tmp_path))


def test_the_committed_scores_are_those_of_the_text(real_text: Path) -> None:
    if not (real_text / "outputs_newstest2017_ende").is_dir():
        pytest.skip("needs the published translations.")
    committed = load(Path(__file__).parents[2] / "results", Outputs2017)
    assert committed is not None
    found = {(one.kind, one.toolkit): (one.sha256, round(one.bleu, 2)) for one in committed.systems}
    assert {key: score for key, (_, score) in found.items()} == {
        ("rnn", "nematus"): 23.78, ("rnn", "sockeye"): 25.55, ("cnn", "fairseq"): 23.37, ("cnn", "sockeye"): 24.59,
        ("transformer", "tensor2tensor"): 26.34, ("transformer", "marian"): 27.40, ("transformer", "sockeye"): 27.50,
    }  # fmt: skip
