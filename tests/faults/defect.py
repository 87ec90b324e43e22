"""What a planted defect is: a change to one file of the package that named tests must notice."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    """One token of text replaced by another; it stands exactly once in its file."""

    name: str
    file: str  # from the root of the checkout
    old: str
    new: str
    tests: tuple[str, ...]  # pytest's ids: each of them must turn red
