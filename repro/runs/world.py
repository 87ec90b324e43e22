"""The name of a folder of results, read as the options that made it: "captions-bf16" is captions with --precision bf16.

Pages and pictures name the folder that they stand in, and so do their commands; what a page says can be typed as it is.
"""

import re
from dataclasses import fields, replace
from typing import Any

from repro.data.batch_by import RECORDED
from repro.data.corpora import CORPORA
from repro.runs.options import CLEANING, Options, chosen_scale
from repro.runs.scales import SCALES

NUMBERS = ("steps", "devices", "threads", "vocab_size")
OPTIONS_OF = {recorded: option for option, recorded in RECORDED.items()}
# in the order in which `chosen_scale` puts them together
NAME = re.compile(
    rf"(?P<scale>{'|'.join(SCALES)})"
    rf"(?:-(?P<corpus>{'|'.join(CORPORA)}))?"
    r"(?:-(?P<pair>[a-z]{2,3}-[a-z]{2,3}))?"
    r"(?:-(?P<steps>\d{1,9})-steps)?"
    r"(?:-(?P<devices>\d{1,9})-devices)?"
    r"(?:-(?P<strategy>fsdp))?"
    r"(?:-(?P<threads>\d{1,9})-threads)?"
    r"(?:-(?P<precision>fp32|bf16))?"
    r"(?:-(?P<backend>ctranslate2(?:-int8)?))?"
    r"(?:-(?P<vocab_size>\d{1,9})-pieces)?"
    rf"(?:-by-(?P<batch_by>{'|'.join(OPTIONS_OF)}))?"
    rf"(?:-clean(?P<clean>(?:-(?:{'|'.join(CLEANING)}))+))?",
    re.ASCII,
)


def spelled_out(options: Options) -> Options:
    """The options with what their scale's name says beside the scale; unchanged where it says nothing else.

    Raises ValueError where an option contradicts the name. A name that no options make is left as it is.
    """
    if options.scale in SCALES or (found := NAME.fullmatch(options.scale)) is None:
        return options
    said: dict[str, Any] = {name: value for name, value in found.groupdict().items() if value is not None}
    said |= {name: int(said[name]) for name in NUMBERS if name in said}
    if "batch_by" in said:
        said["batch_by"] = OPTIONS_OF[said["batch_by"]]
    if "clean" in said:
        said["clean"] = tuple(said["clean"].removeprefix("-").split("-"))
    if chosen_scale(Options(**said)).name != options.scale:
        return options  # such as one that spells out what is the scale's own
    usual = {field.name: field.default for field in fields(Options)}
    for name, value in said.items():
        typed = getattr(options, name)
        if name != "scale" and typed not in (usual[name], value):
            raise ValueError(
                f"--scale {options.scale} says --{name.replace('_', '-')} {_word(value)}, and {_word(typed)} was asked "
                f"for. Leave the option out, or name the scale {said['scale']}."
            )
    return replace(options, **said)


def _word(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
