"""What runs would take on cards that are not here: hours and, with a price, money. By published rates; no torch."""

from collections.abc import Sequence

from repro.render.several import several
from repro.runs.forecast import (
    BACKWARD_AND_FORWARD,
    disk_needed,
    expected_flops,
    forecast_rows,
    further_sentences,
    held_out,
    texts_of,
)
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.speed.hardware import Hardware, card_of
from repro.runs.table import Cell


def forecast_elsewhere(table: str, asked: Sequence[Cell], scale: Scale, options: Options) -> str:
    """Rows, parameters, tokens, operations, hours and money; the rates behind them; the whole in the last line."""
    card, price, n = card_of(options.hardware or ""), options.price, options.processes
    hours = [hours_of(cell, scale, card, n) for cell in asked]
    ends = [f"{one:>10,.2f}" + ("" if price is None else f"{one * n * price:>12,.2f}") for one in hours]
    rates = [card.rate(cell.hyper) for cell in asked]
    of = f", shard {options.shard}" if options.shard else ""
    titles = f"{'hours':>10}" + ("" if price is None else f"{'money':>12}")
    used = {("big" if rate is card.big else "base"): rate for rate in rates}
    published = sum(not rate.extrapolated for rate in rates)
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(asked), 'run')} on {texts_of(asked, scale)}; "
            f"shows {scale.claim}.",
            *forecast_rows(asked, scale, titles, ends),
            *(
                f"Rate of the {name} model on one {card.name}: {rate.pairs:,.0f} pairs of tokens a second, "
                f"{'extrapolated: ' if rate.extrapolated else 'published: '}{rate.source}."
                for name, rate in used.items()
            ),
            "Other rows: from their operations, at the rate of the model of the same width.",
            *_scaling(card, n, scale.batch_tokens // n),
            f"Translating: {card.translated:,.0f} tokens a second on one, {card.translated_source}.",
            f"Disk: {disk_needed(asked, scale)}.",
            " ".join(filter(None, [_precision(card, options), card.note])),
            _whole(card, hours, published, options),
        ]
    )


def hours_of(cell: Cell, scale: Scale, card: Hardware, devices: int) -> float:
    """Hours of a run that so many cards share: training and validation; then one of them translates."""
    pair, scale = cell.task.name, cell.task.at(scale)
    n_dev, n_test = held_out(scale, pair)
    translated = (n_dev + n_test + further_sentences(scale, pair)) * scale.sentence_tokens
    flops = expected_flops(cell.hyper, scale, pair, cell.row.system)
    speed = card.rate(cell.hyper).flops * devices * card.efficiency(devices)
    read = cell.hyper.steps // scale.validate_every * n_dev * scale.sentence_tokens  # tokens of dev along the way
    share = read / (cell.hyper.steps * scale.batch_tokens) / BACKWARD_AND_FORWARD
    return (flops * (1 + share) / speed + translated / card.translated) / 3600


def _scaling(card: Hardware, n: int, tokens: int) -> list[str]:
    """What several cards lose, and why it may be more."""
    if n == 1:
        return []
    less = f"; that is with {card.scaling_tokens:,} tokens each per update, here {tokens:,}: expect less"
    return [
        f"With {n} of them, each keeps {card.efficiency(n):.0%} of its speed ({card.scaling_source}"
        f"{less if tokens < card.scaling_tokens else ''})."
    ]


def _precision(card: Hardware, options: Options) -> str:
    if card.name == "p100":
        return "The rates are of float32; by the paper's own program."
    asked = "" if options.products == "bf16" else ": expected --precision bf16 in the runs, float32 takes longer"
    return f"The rates are of half precision{asked}."


def _whole(card: Hardware, hours: Sequence[float], published: int, options: Options) -> str:
    n, price = options.processes, options.price
    money = "" if price is None else f", {sum(hours) * n * price:,.2f} in money at {price:,.2f} a device-hour"
    extrapolated = len(hours) - published
    known = ", ".join(
        f"{n_runs} of {len(hours)} runs by {what} rates"
        for n_runs, what in ((published, "published"), (extrapolated, "extrapolated"))
        if n_runs
    )
    return (
        f"In all on {n} {card.name}, one run after the other: {sum(hours):,.1f} hours, {sum(hours) * n:,.1f} "
        f"device-hours{money}; {known}."
    )
