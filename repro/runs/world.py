"""The name of a folder of results, read as the options that made it: "captions-bf16" is captions with --precision bf16.

Pages and pictures name their folder, and so do the commands on them, which can therefore be typed as they are.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from repro.corpora.catalogue import CORPORA
from repro.data.batch_by import RECORDED
from repro.runs.options import CLEANING, Options, chosen_scale
from repro.runs.scales import SCALES

OWN_TEXT = Path("FOLDER")  # stands for a text of one's own, of which the name has only a hash
PAIRS = {pair for corpus in CORPORA.values() for pair in corpus.folders}
NUMBERS = ("steps", "batch_tokens", "device_tokens", "devices", "threads", "vocab_size")
OPTIONS_OF = {recorded: option for option, recorded in RECORDED.items()}
# the parts in the order in which `chosen_scale` joins them; last the hash that a `Session` adds
NAME = re.compile(
    rf"(?P<scale>{'|'.join(SCALES)})"
    rf"(?:-(?P<corpus>{'|'.join(CORPORA)}))?"
    r"(?:-(?P<pair>(?!by-)[a-z]{2,3}(?:-\w+){1,5}?))?"
    r"(?:-(?P<steps>\d{1,9})-steps)?"
    r"(?:-(?P<batch_tokens>\d{1,9})-tokens)?"
    r"(?:-(?P<device_tokens>\d{1,9})-device-tokens)?"
    r"(?:-(?P<devices>\d{1,9})-devices)?"
    r"(?:-(?P<threads>\d{1,9})-threads)?"
    r"(?:-(?P<precision>fp32|bf16))?"
    r"(?:-(?P<backend>ctranslate2(?:-int8)?))?"
    r"(?:-(?P<vocab_size>\d{1,9})-pieces)?"
    rf"(?:-by-(?P<batch_by>{'|'.join(OPTIONS_OF)}))?"
    rf"(?:-clean(?P<clean>(?:-(?:{'|'.join(CLEANING)}))+))?"
    r"(?:-(?P<text>[0-9a-f]{8}))?",
    re.ASCII,
)


def options_of(name: str) -> Options | None:
    """The options that the name of a folder stands for; None for a name that no options make, as in older code.

    For a text of one's own, `data_dir` is `OWN_TEXT`. Raises ValueError for options that this machine cannot have.
    """
    if (found := NAME.fullmatch(name)) is None:
        return None
    said: dict[str, Any] = {part: value for part, value in found.groupdict().items() if value is not None}
    said |= {part: int(said[part]) for part in NUMBERS if part in said}
    if "batch_by" in said:
        said["batch_by"] = OPTIONS_OF[said["batch_by"]]
    if "clean" in said:
        said["clean"] = tuple(said["clean"].removeprefix("-").split("-"))
    text = said.pop("text", None)
    if said.get("corpus") == "folder":
        said["data_dir"] = OWN_TEXT
    elif text or said.get("pair") not in (None, *PAIRS):
        return None  # another hash, or two words that look like languages
    options = Options(**said)
    made = chosen_scale(options).name
    return options if name == (f"{made}-{text}" if text else made) else None


def spelled_out(options: Options) -> Options:
    """The options, with those that the scale's name stands for written out; unchanged if it is a plain scale.

    What was typed beside the name counts. Raises ValueError for the name of a text of one's own, which does not say
    where the text is.
    """
    if options.scale in SCALES or (named := options_of(options.scale)) is None:
        return options
    if named.data_dir:
        raise ValueError(
            f"--scale {options.scale} stands for a text of your own, and does not say in which folder it is. Expected "
            f"its scale and the folder: --scale {named.scale} --corpus folder --data-dir {OWN_TEXT}."
        )
    return replace(options, **named.typed | options.typed | {"scale": named.scale})
