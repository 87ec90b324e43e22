"""Sub-word pieces: one byte-level BPE vocabulary for both languages. Paper: section 5.1.

Every line is text before it is pieces: any line, blanks and control characters included, comes back
exactly. Three choices make that so and keep the vocabulary small:

- pieces are made of bytes, so no character is unknown;
- each line is read with one blank before it, which decoding takes off again, so the first word of a line has
  the pieces of the same word inside one;
- "<pad>" and "</s>" have ids and no spelling: a line that holds the letters "</s>" does not end there.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from repro import durable
from repro.symbols import EOS, PAD, SPECIAL

MIN_SIZE = len(SPECIAL) + 256  # every byte is a piece
LINES_AT_ONCE = 20_000  # bounds memory: the library keeps the spelling of each piece beside its id


class Tokenizer:
    """Lines to ids and back; the same file is the same tokenizer, wherever it was trained."""

    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        self._engine = tokenizers.Tokenizer.from_buffer(contents)
        found = tuple(self._engine.id_to_token(id) for id in (PAD, EOS))
        if found != SPECIAL:
            raise ValueError(f"A tokenizer must have {SPECIAL} at ids {PAD} and {EOS}, got {found}.")
        self.size = self._engine.get_vocab_size()
        self.sha256 = hashlib.sha256(contents).hexdigest()
        self.dtype = np.dtype("<u2" if self.size <= 1 << 16 else "<u4")

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        return Tokenizer, (self._contents,)

    def encode(self, lines: Sequence[str]) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """ids [pieces] of all lines, each with EOS at its end; offsets [lines + 1] of where they begin."""
        ids, lengths = [np.empty(0, self.dtype)], [np.zeros(1, np.int64)]
        for start in range(0, len(lines), LINES_AT_ONCE):
            encodings = self._engine.encode_batch_fast(lines[start : start + LINES_AT_ONCE])
            pieces = chain.from_iterable((*encoding.ids, EOS) for encoding in encodings)
            ids.append(np.fromiter(pieces, self.dtype))
            lengths.append(np.fromiter((len(encoding) + 1 for encoding in encodings), np.int64))
        return np.concatenate(ids), np.concatenate(lengths).cumsum()

    def decode(self, ids: Iterable[int]) -> str:
        """The line up to EOS; PAD is nothing. Of any ids at all it makes one line."""
        pieces = []
        for id in ids:
            if id == EOS:
                break
            if id != PAD:
                pieces.append(int(id))
        # No line holds a line feed, but an untrained model may write one, and a file has as many as lines.
        return self._engine.decode(pieces).replace("\n", " ")

    def save(self, path: Path) -> None:
        durable.write_bytes(path, self._contents)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        contents = path.read_bytes()
        try:
            return cls(contents)
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"{path} is no tokenizer ({error}). Delete its folder.") from None


def train_tokenizer(lines: Iterable[str], size: int) -> Tokenizer:
    """Learn at most `size` pieces, fewer where the text has no pair of pieces left that occurs twice."""
    if size < MIN_SIZE:
        raise ValueError(f"A vocabulary needs {MIN_SIZE} pieces for the bytes and {SPECIAL}, got {size}.")
    engine = tokenizers.Tokenizer(models.BPE())
    engine.normalizer = normalizers.Prepend(" ")
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(lines, trainer)
    contents = json.loads(engine.to_str())
    contents["added_tokens"] = []  # else the library finds "</s>" in text
    return Tokenizer(json.dumps(contents, ensure_ascii=False, indent=0).encode())
