"""Text of a reader's own: files, and folders as `--data-dir` takes them."""

from collections.abc import Sequence
from pathlib import Path

Pairs = Sequence[tuple[str, ...]]


def put(path: Path, content: bytes | str) -> Path:
    """The file, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def text_folder(folder: Path, pair: str = "en-de", **splits: Pairs) -> Path:
    """Two files for each split (train, dev, test ...), one pair a line."""
    for split, pairs in splits.items():
        for language, lines in zip(pair.split("-", 1), zip(*pairs, strict=True), strict=True):
            put(folder / f"{split}.{language}", "".join(f"{line}\n" for line in lines))
    return folder


def own_text(pair: str = "en-de", *, words: int) -> dict[str, list[tuple[str, ...]]]:
    """Splits of lines of one to five words, of so many in each language."""
    sizes = {"train": 40, "dev": 5, "test": 7}

    def line(language: str, i: int) -> str:
        return " ".join(f"{language}{(i + j) % words}" for j in range(1 + i % 5))

    return {name: [tuple(line(of, i) for of in pair.split("-")) for i in range(n)] for name, n in sizes.items()}
