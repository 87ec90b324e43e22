"""The options of an experiment: one statement of each default, and names that tell settings apart."""

from dataclasses import fields
from pathlib import Path

import pytest

from repro.runs.command import Parser
from repro.runs.options import USUAL, Options, Seeds, add_options, chosen_scale
from repro.runs.run_dir import planned
from repro.runs.scales import SCALES


def read(*words: str) -> Options:
    return Options.read("table_x", words)


def test_the_command_line_is_made_of_the_fields() -> None:
    assert read() == USUAL == Options()
    assert read().typed == {}
    typed = read(
        "--rows", "base", "a b", "--seeds=3", "--data-dir", "my texts", "--clean", "fairseq", "--fork",
        "--batch-by=tokens", "--steps=7",
    )  # fmt: skip
    assert typed.typed == {
        "data_dir": Path("my texts"), "rows": ("base", "a b"), "seeds": Seeds((1, 2, 3)), "steps": 7,
        "clean": ("fairseq",), "batch_by": "tokens", "fork": True,
    }  # fmt: skip


@pytest.mark.parametrize("option", ["runs", "results", "cache", "data"])
@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_folder_name_is_refused(option: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(f"--{option}-dir", name)
    assert f"--{option}-dir: expected the name of a folder, got {name!r}" in capsys.readouterr().err


def test_an_option_at_its_default_does_not_count_as_typed() -> None:
    assert read("--scale=laptop", "--seeds=1").typed == {}


def test_every_option_has_a_help() -> None:
    assert [one.name for one in fields(Options) if not one.metadata.get("help")] == []


def test_another_command_has_the_same_default() -> None:
    parser = Parser()
    add_options(parser, "scale", "runs_dir", "clean", scale="whose runs")
    assert vars(parser.parse_args([])) == {"scale": USUAL.scale, "runs_dir": USUAL.runs_dir, "clean": ()}
    assert "whose runs (default: laptop)" in parser.format_help()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "laptop"),
        (["--scale=single_gpu", "--batch-by=padded_tokens"], "single_gpu-by-slots"),
        (["--batch-by=tokens"], "laptop-by-tokens"),
        (["--scale=single_gpu", "--batch-by=tokens"], "single_gpu"),
        (["--backend=ctranslate2", "--precision=bf16"], "laptop-bf16-ctranslate2"),
        (["--vocab-size=700", "--steps=9", "--devices=2"], "laptop-9-steps-2-devices-700-pieces"),
        (["--vocab-size=3000"], "laptop-3000-pieces"),  # as many as for translation, and twice as many as for trees
        (["--steps=9", "--batch-tokens=1024", "--devices=2"], "laptop-9-steps-1024-tokens-2-devices"),
        (["--batch-tokens=512"], "laptop"),
        (["--device-tokens=256", "--devices=2"], "laptop-256-device-tokens-2-devices"),
        (["--scale=single_gpu", "--precision=bf16"], "single_gpu"),
        (["--scale=single_gpu", "--precision=fp32"], "single_gpu-fp32"),
        (["--precision=fp32"], "laptop"),
        (["--pair=en-fr", "--clean", "length_ratio"], "laptop-en-fr-clean-length_ratio"),
    ],
)
def test_other_settings_have_a_name_of_their_own(words: list[str], name: str) -> None:
    assert chosen_scale(read(*words)).name == name


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
        (["--seeds", "1,3"], (1, 3), "2 seeds: 1, 3", "1,3"),
        (["--seeds", "3,1,3"], (1, 3), "2 seeds: 1, 3", "1,3"),
        (["--seeds", "2,4-6"], (2, 4, 5, 6), "4 seeds: 2, 4, 5, 6", "2,4,5,6"),
        (["--seed", "7"], (7,), "seed 7", "7-7"),
        (["--seed=1"], (1,), "seed 1", "1"),
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
        (["--seed", "0"], "got 0-0"),
        (["--seed", "7", "--seeds", "3"], "expected --seed or --seeds, got both: --seed 7, --seeds 3"),
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
