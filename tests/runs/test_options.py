"""The options of an experiment: one statement of each default, and names that tell settings apart."""

from dataclasses import fields
from pathlib import Path

import pytest

from repro.experiment import main
from repro.results.places import PUBLISHED, RETIRED
from repro.runs.command import Parser
from repro.runs.options import USUAL, Options, Seeds, add_options, chosen_scale, options_of, spelled_out
from repro.runs.run_dir import planned
from repro.runs.scales import SCALES


def read(*words: str) -> Options:
    return Options.read("table_x", words)


def test_the_command_line_is_made_of_the_fields() -> None:
    assert read() == USUAL == Options()
    assert read("--scale=laptop", "--seeds=1").typed == {}
    assert [one.name for one in fields(Options) if not one.metadata.get("help")] == []
    typed = read(
        "--rows", "base", "a b", "--seeds=3", "--data-dir", "my texts", "--clean", "fairseq", "--fork",
        "--batch-by=tokens", "--steps=7",
    )  # fmt: skip
    assert typed.typed == {
        "data_dir": Path("my texts"), "rows": ("base", "a b"), "seeds": Seeds((1, 2, 3)), "steps": 7,
        "clean": ("fairseq",), "batch_by": "tokens", "fork": True,
    }  # fmt: skip


def test_another_command_has_the_same_default_and_folders_have_names(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser()
    add_options(parser, "scale", "runs_dir", "clean", scale="whose runs")
    assert vars(parser.parse_args([])) == {"scale": USUAL.scale, "runs_dir": USUAL.runs_dir, "clean": ()}
    assert "whose runs (default: laptop)" in parser.format_help()
    for option in ("runs", "data"):
        with pytest.raises(SystemExit):
            read(f"--{option}-dir", " ")
        assert f"--{option}-dir: expected the name of a folder, got ' '" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (Options(), "laptop"),
        (Options(scale="single_gpu", batch_by="tokens", precision="bf16"), "single_gpu"),
        (Options(vocab_size=3000), "laptop-3000-pieces"),  # the scale's own, and twice as many as for trees
        (Options(vocab_size=700, steps=9, devices=2), "laptop-9-steps-2-devices-700-pieces"),
        (Options(batch_by="tokens", clean=("length_ratio", "fairseq")), "laptop-by-tokens-clean-length_ratio-fairseq"),
        (
            Options(pair="en-fr", steps=9, precision="bf16", backend="ctranslate2-int8", vocab_size=700),
            "laptop-en-fr-9-steps-bf16-ctranslate2-int8-700-pieces",
        ),
        (Options(scale="single_gpu", batch_by="padded_tokens", precision="fp32"), "single_gpu-fp32-by-slots"),
        (
            Options(scale="single_gpu", batch_tokens=9_000, device_tokens=3_000, devices=2),
            "single_gpu-9000-tokens-3000-device-tokens-2-devices",
        ),
        (Options(scale="captions", corpus="multi30k_tok", threads=1), "captions-multi30k_tok"),
    ],
)
def test_other_settings_have_a_name_of_their_own_which_stands_for_them(options: Options, name: str) -> None:
    scale = chosen_scale(options)
    assert scale.name == name
    assert chosen_scale(spelled_out(Options(scale=name))) == scale
    assert options_of(name) == (Options(scale=name) if name in SCALES else options)


@pytest.mark.parametrize(("n", "devices", "parts"), [(32_768, 1, 1), (12_500, 1, 2), (8_000, 1, 4), (8_000, 4, 1)])
def test_a_device_takes_as_many_tokens_at_once_as_it_is_told(n: int, devices: int, parts: int) -> None:
    options = Options(scale="single_gpu", device_tokens=n, devices=devices)
    [run] = planned([], chosen_scale(options), options)
    assert (run.spec.devices, run.spec.accumulate) == (devices, parts)


def test_the_usual_options_are_the_scale_itself() -> None:
    for name, scale in SCALES.items():
        assert chosen_scale(Options(scale=name)) == scale


@pytest.mark.parametrize(
    ("words", "seeds", "told", "again"),
    [
        (["--seeds", "7"], (1, 2, 3, 4, 5, 6, 7), "7 seeds: 1 to 7", "7"),
        (["--seeds", "1"], (1,), "seed 1", "1"),
        (["--seeds", "4-6"], (4, 5, 6), "3 seeds: 4 to 6", "4-6"),
        (["--seeds", "3,1,3"], (1, 3), "2 seeds: 1, 3", "1,3"),
        (["--seeds", "2,4-6"], (2, 4, 5, 6), "4 seeds: 2, 4, 5, 6", "2,4,5,6"),
        (["--seed", "7"], (7,), "seed 7", "7-7"),
        ([], (1,), "seed 1", "1"),
    ],
)
def test_seeds_are_what_was_typed_and_are_said(words: list[str], seeds: tuple[int, ...], told: str, again: str) -> None:
    found = read(*words).seeds
    assert (tuple(found), found.told, str(found)) == (seeds, told, again)
    assert Seeds.read(str(found)) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "0"], "expected how many seeds, from 1 to 10,000, or which, such as 4-11 or 1,3; got 0"),
        (["--seeds", "1,"], "or which, such as 4-11 or 1,3; got 1,"),
        (["--seeds", "6-4"], "got 6-4"),
        (["--seeds", "1,20000-40000"], "from 1 to 10,000"),
        (["--seed", "4-6"], "got 4-6-4-6"),
        (["--seed", "7", "--seeds", "3"], "argument --seeds: not allowed with argument --seed"),
    ],
)
def test_malformed_seeds_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        read(*words)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_an_update_has_room_for_the_longest_pair() -> None:
    assert chosen_scale(Options(batch_tokens=128)).batch_tokens == 128
    with pytest.raises(
        ValueError, match="--batch-tokens 127: expected at least 128, since training pairs of up to that many"
    ):
        chosen_scale(Options(batch_tokens=127))
    with pytest.raises(ValueError, match=r"--device-tokens 255: expected at least 256, since training pairs"):
        chosen_scale(Options(scale="single_gpu", device_tokens=255))


def test_rows_may_be_named_one_by_one_and_a_misspelt_option_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert Options.read("t", ["--rows", "base", "--rows", "h=1", "h=4"]).rows == ("base", "h=1", "h=4")
    with pytest.raises(SystemExit):
        Options.read("t", ["--rowz", "base"])
    assert "unrecognized arguments: --rowz base; did you mean --rows?" in capsys.readouterr().err


# ---- a name of a folder of results, typed as a scale


def test_a_name_that_no_options_make_is_left() -> None:
    for name in (
        "laptop-20000-pairs",  # of older code
        "laptop-1800-steps",  # the scale's own
        "laptop-bf16-9-steps",  # in another order
        "laptop-0123abcd",  # a text, and whose is not said
        "laptop-big-ones",  # no pair of languages
    ):
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
