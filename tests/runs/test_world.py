"""What a folder of results is called can be typed as a scale: it stands for the options that made it."""

from pathlib import Path

import pytest

from repro.experiment import main
from repro.results.places import PUBLISHED, RETIRED
from repro.runs.options import Options, chosen_scale, options_of, spelled_out
from repro.runs.scales import SCALES
from repro.runs.sizes import processors

SPELLED = [
    Options(scale="captions", precision="bf16"),
    Options(scale="captions", corpus="multi30k_tok", steps=12_000, precision="bf16"),
    Options(scale="captions", corpus="multi30k_tok", steps=8_000, batch_tokens=8_192, precision="bf16"),
    Options(pair="en-fr", steps=9, precision="bf16", backend="ctranslate2-int8", vocab_size=700),
    Options(scale="single_gpu", batch_by="padded_tokens", precision="fp32"),
    Options(scale="single_gpu", batch_tokens=9_000, device_tokens=3_000, devices=2),
    Options(batch_by="tokens", clean=("length_ratio", "fairseq")),
    Options(devices=2, backend="ctranslate2"),
]


@pytest.mark.parametrize("options", SPELLED, ids=lambda options: chosen_scale(options).name)
def test_a_name_is_the_options_that_make_it(options: Options) -> None:
    assert spelled_out(Options(scale=chosen_scale(options).name)) == options


@pytest.mark.skipif(processors() < 2, reason="one processor bears one thread")
def test_threads_are_in_the_name() -> None:
    assert spelled_out(Options(scale="laptop-2-threads")) == Options(threads=2)


@pytest.mark.parametrize(
    "name",
    [
        "laptop",
        "laptop-20000-pairs",  # of older code
        "laptop-1800-steps",  # the scale's own
        "laptop-bf16-9-steps",  # in another order
        "laptop-0123abcd",  # a text, and whose is not said
        "laptop-big-ones",  # no pair of languages
        "lap",
    ],
)
def test_a_name_that_no_options_make_is_left(name: str) -> None:
    assert spelled_out(Options(scale=name)) == Options(scale=name)


@pytest.mark.parametrize("name", ["laptop-folder-0123abcd", "captions-folder-en-zh-Hans-9-steps-0123abcd"])
def test_a_text_of_ones_own_has_to_be_shown(name: str) -> None:
    with pytest.raises(ValueError, match=f"--scale {name} stands for a text of your own, .* --data-dir FOLDER"):
        spelled_out(Options(scale=name))


def test_what_is_typed_beside_the_name_counts() -> None:
    made = spelled_out(Options(scale="captions-9-steps-bf16", steps=100, rows=("base",)))
    assert made == Options(scale="captions", steps=100, rows=("base",), precision="bf16")


def test_a_command_of_a_page_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    main("t", [], ["--scale=laptop-9-steps-bf16", "--dry-run"])
    said = capsys.readouterr().out
    assert said.startswith("t at scale laptop-9-steps-bf16: 1 run on grammar, seed 1; ")
    assert " 9 " in said.split("\n")[2]


def test_published_folders_that_no_command_makes_again_are_known_as_such() -> None:
    published = [folder.name for folder in Path(PUBLISHED).iterdir() if (folder / "rows.json").exists()]
    assert {name for name in published if name not in SCALES and options_of(name) is None} == RETIRED
