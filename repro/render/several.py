"""A count with its noun in singular or plural."""


def several(n: int, what: str) -> str:
    """1 run, 2 runs."""
    return f"{n} {what}{'s' * (n != 1)}"
