"""Translate standard input with this folder and CTranslate2.

Run: python example.py < text > translations
"""

import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

FOLDER = Path(__file__).parent
END = "1"  # the end symbol: tokens are called by their numbers, in digits


def main() -> None:
    """Line by line; a line without text stays one."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    translator = ctranslate2.Translator(str(FOLDER))
    lines = [line.rstrip("\n") for line in sys.stdin]
    source = [[*map(str, tokenizer.encode(line).ids), END] for line in lines]
    found = translator.translate_batch(source, beam_size=4, max_decoding_length=512, disable_unk=True)
    for line, result in zip(lines, found, strict=True):
        print(tokenizer.decode([int(token) for token in result.hypotheses[0]]) if line.strip() else "")


if __name__ == "__main__":
    main()
