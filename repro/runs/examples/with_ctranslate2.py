"""Translate standard input with this folder and CTranslate2.

Run: python example.py < text > translations
"""

import json
import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

FOLDER = Path(__file__).parent
END = "1"  # the end symbol: tokens are called by their numbers, in digits
LEARNED = json.loads((FOLDER / "record.json").read_bytes())["hyper"]["learned_positions"]
LONGEST = 512 if LEARNED else 4_096  # tokens of a sentence, its end included: so many positions the model has


def main() -> None:
    """Line by line; a line without text stays one."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    translator = ctranslate2.Translator(str(FOLDER))
    lines = [line.rstrip("\n") for line in sys.stdin]
    source = [[*map(str, tokenizer.encode(line).ids), END] for line in lines]
    for number, tokens in enumerate(source, 1):  # before any work
        if (n := len(tokens)) > LONGEST:
            sys.exit(f"line {number}: expected at most {LONGEST:,} tokens, got {n:,}. Cut it into sentences.")
    found = translator.translate_batch(
        source,
        beam_size=4,
        max_input_length=0,  # by itself it would leave out what is beyond 1,024 tokens
        max_decoding_length=max(512, *map(len, source)) if source else 512,
        disable_unk=True,
    )
    for line, result in zip(lines, found, strict=True):
        print(tokenizer.decode([int(token) for token in result.hypotheses[0]]) if line.strip() else "")


if __name__ == "__main__":
    main()
