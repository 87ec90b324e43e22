"""Translate standard input with this folder and Hugging Face's transformers.

Run: python example.py < text > translations
"""

import sys
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent
AT_ONCE = 32  # sentences
OLDEST = (4, 52)  # of transformers, that the folder was tried with; 4.48 made no end of 200 short lines


def main() -> None:
    """Line by line; a line without text stays one."""
    found = version("transformers")
    if tuple(map(int, found.split(".")[:2])) < OLDEST:
        sys.exit(f"expected transformers {OLDEST[0]}.{OLDEST[1]} or newer, got {found}: pip install -U transformers")
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # after the look at its version: an old one may fail

    tokenizer, model = AutoTokenizer.from_pretrained(FOLDER), AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
    lines, most = [line.rstrip("\n") for line in sys.stdin], model.config.max_position_embeddings
    for number, line in enumerate(lines, 1):  # before any work
        if (n := len(tokenizer(line)["input_ids"])) > most:
            sys.exit(f"line {number}: expected at most {most:,} tokens, got {n:,}. Cut it into sentences.")
    for begin in range(0, len(lines), AT_ONCE):
        some = lines[begin : begin + AT_ONCE]
        given = tokenizer(some, return_tensors="pt", padding=True)
        # by itself it would cut a translation at 512 tokens
        ids = model.generate(**given, max_length=max(512, given["input_ids"].shape[1]))
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        print(*(text if line.strip() else "" for line, text in zip(some, texts, strict=True)), sep="\n")


if __name__ == "__main__":
    main()
