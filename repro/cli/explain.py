"""Show what a finished run computes for a sentence of one's own, step by step, and what its gradients are there."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.cli.decode import asked, run_parser, warn_of_unseen
from repro.render.markup import html, whole_table
from repro.render.page import Block, Column, Heading, Page, Table, Text, blocks
from repro.render.terminal import terminal
from repro.runs.command import ours
from repro.runs.load import open_run
from repro.storage.atomic import write_text

if TYPE_CHECKING:
    from repro.runs.explained import Explained

WITHOUT = {
    "mask": "The decoder sees later tokens, too. The search stays: when it writes, nothing comes later",
    "scale": "Scores are not divided by the square root of d_k, so they are that much larger",
    "positions": "Nothing says where a token stands: the encoder reads a set of tokens",
    "softmax": "Weights are the scores over the number of seen keys: of either sign, and their sum is not one",
}
TITLES = {
    "encoder": "The encoder's attention: the sentence asks itself",
    "decoder": "The decoder's masked attention: the translation asks itself",
    "cross": "The decoder's attention to the encoder: the translation asks the sentence",
}
FIRST = 4  # numbers of a vector that are shown


def explain(argv: Sequence[str] | None = None) -> int:
    """Explain what a finished run of the Transformer does with a sentence, step by step, to standard output."""
    parser = run_parser("explain", explain.__doc__)
    parser.add_argument("sentence", help="a sentence of yours, in quotation marks; at most 40 tokens")
    parser.add_argument("--target", help="the translation that it reads (default: the one that its search finds)")
    parser.add_argument("--without", choices=WITHOUT, help="what changes in this model without this part")
    parser.add_argument("--layer", type=int, default=1, help="which layer is shown (default: 1)")
    parser.add_argument("--head", type=int, default=1, help="which of its heads (default: 1)")
    parser.add_argument("--token", type=int, help="which token of the sentence asks (default: the one in the middle)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page for the browser instead")
    options, folder, run = asked(parser, argv)
    if run.system is not None:
        raise ValueError(
            f"expected a run of the Transformer as printed, got row {run.row!r} of {run.table}, a {run.system}, whose "
            "steps are others. Name another run, such as base."
        )
    warn_of_unseen(run, [options.sentence])
    trained = open_run(folder)
    from repro.runs.explained import explained, ids_of

    source = ids_of(trained.tokenizer, options.sentence)
    place = len(source) // 2 + 1 if options.token is None else options.token
    most = {"layer": run.hyper["n_layers"], "head": run.hyper["n_heads"], "token": len(source)}
    for option, given in (("layer", options.layer), ("head", options.head), ("token", place)):
        if not 1 <= given <= most[option]:
            raise ValueError(f"--{option}: expected a number from 1 to {most[option]}, got {given}.")
    target = None if options.target is None else ids_of(trained.tokenizer, options.target)[:-1]
    seen = explained(trained, source, target)
    other = options.without and explained(trained, source, seen.written_ids[:-1], options.without)
    parts = {f"Without {options.without}": _change(seen, other, options.without)} if other else {}
    parts["Tokens, embeddings, positions"] = _embedded(seen)
    parts |= {title: _attention(seen, kind, options, place - 1) for kind, title in TITLES.items()}
    parts["Logits: what comes next"] = _logits(seen)
    parts["The search"] = _search(seen)
    parts["Back-propagation: six questions"] = _back(seen, other, options)
    title = f"What run {run.run} does with “{options.sentence}”"
    lead = (
        f"{run.table}, {run.row}, seed {run.seed}, scale {run.scale}, {run.pair}. Layer {options.layer}, head "
        f"{options.head}; computed in float64, without dropout. Of a vector the first {FIRST} numbers are shown."
    )
    if options.html:
        write_text(options.html, _report(title, lead, parts))
        print(f"{options.html}: open it in a browser; it needs nothing else")
    else:
        below = ((Heading(heading), *there) for heading, there in parts.items())
        print(terminal(Page("", blocks(Heading(title, 1), Text(lead), *below))), end="")
    return 0


def _report(title: str, lead: str, parts: Mapping[str, tuple[Block, ...]]) -> str:
    from markupsafe import Markup

    from repro.web.report import Section, report_html

    def table(of: Table) -> str:
        return f'<div class="scroll" tabindex="0">{whole_table(of)}</div>'

    bodies = ((heading, Markup(html(there, table))) for heading, there in parts.items())
    sections = [Section(key=f"step_{n}", title=heading, body=body) for n, (heading, body) in enumerate(bodies)]
    return report_html(sections, title=title, lead=lead, origin=f"Made by {ours('explain')}.")


def _embedded(seen: "Explained") -> tuple[Block, ...]:
    import torch

    with torch.inference_mode():
        embedded = seen.model.embedding(torch.tensor(seen.source_ids))
        places = seen.model.source_positions(0, len(embedded))
    sums = _firsts("their sum: what the encoder reads", embedded + places)
    vectors = (*_firsts("embedding x sqrt(d_model)", embedded), *_firsts("position", places), *sums)
    return (_table(Column("", "token", seen.source), Column("", "id", [*map(str, seen.source_ids)]), *vectors),)


def _attention(seen: "Explained", kind: str, options: argparse.Namespace, place: int) -> tuple[Block, ...]:
    """One query of one head, all heads of that query, and what stands around it."""
    from repro.decoding.inside import entropies

    asked = seen.source if kind == "encoder" else seen.read
    keys = seen.read if kind == "decoder" else seen.source
    at, head = place if kind == "encoder" else len(asked) // 2, options.head - 1
    steps, sums = seen.attention[kind, options.layer], seen.around[kind, options.layer]
    q, k, v, products, scores, weights, heads = (of.detach()[0] for of in steps[:7])
    of_heads = weights[:, at]
    rows = [of.detach()[0, at] for one in sums for of in (one if one is sums[0] else one[1:])]
    names = ["x", "all heads, W_O", "x + all heads", "LayerNorm", "feed-forward network", "their sum", "LayerNorm"]
    numbers = ", ".join(_fixed(q[head, at][:FIRST]))
    return blocks(
        Text(f"“{asked[at]}” asks, head {head + 1} of {len(q)}: q begins with {numbers}."),
        _table(
            Column("", "key", keys),
            *_firsts("k", k[head]),
            Column("", "q k^T", _fixed(products[head, at])),
            Column("", "/ sqrt(d_k)", _fixed(scores[head, at])),
            Column("", "mask", ["0" if sees else "-inf" for sees in steps.seen[0, head, at]]),
            Column("", "softmax", _fixed(of_heads[head])),
            *_firsts("v", v[head]),
        ),
        Text("All heads for this query: weights times v. Side by side they go through W_O."),
        _table(
            Column("", "head", [f"{n}" for n, _ in enumerate(q, 1)]),
            Column("", "looks most at", [keys[n] for n in of_heads.argmax(-1).tolist()], is_words=True),
            Column("", "by", _fixed(of_heads.amax(-1))),
            Column("", "entropy", _fixed(entropies(of_heads.numpy()))),
            *_firsts("weights times v", heads[:, at]),
        ),
        Text("Residual sums and norms of this token."),
        _table(
            Column("", "", names[: len(rows)]),
            Column("", "mean", _fixed([row.mean() for row in rows])),
            Column("", "deviation", _fixed([row.std(correction=0) for row in rows])),
            *_firsts("first numbers", rows),
        ),
    )


def _logits(seen: "Explained") -> tuple[Block, ...]:
    likeliest = seen.logits.softmax(-1).topk(3)
    others = [
        ", ".join(f"{seen.spelled(id)} {value:.3f}" for id, value in zip(ids, values, strict=True))
        for ids, values in zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
    ]
    columns = (
        Column("", "read", seen.read),
        Column("", "to be written", seen.written, is_words=True),
        Column("", "its logit", _fixed(seen.logits[range(len(others)), seen.written_ids])),
        Column("", "probability", _fixed(seen.log_probs.exp())),
        Column("", "likeliest", others, is_words=True),
    )
    return blocks(_table(*columns), Text(f"Loss of this translation: {seen.loss:.4f} nats a token, without smoothing."))


def _search(seen: "Explained") -> tuple[Block, ...]:
    """For each length: which hypotheses live on, which ended, and what is compared."""
    steps, lengths = seen.tree.steps, [0]
    lived: list[list[str]] = [[] for _ in steps]
    ended: list[list[str]] = [[] for _ in steps]
    for node in seen.tree.nodes:
        lengths.append(lengths[node.parent + 1] + 1)
        if node.score is not None:
            ended[lengths[-1] - 1].append(f"{node.score:.2f}")
        elif node.fate.name == "LIVED":
            lived[lengths[-1] - 1].append(f"{seen.spelled(node.token)} {node.log_prob:.2f}")
    columns = (
        Column("", "tokens", [f"{n}" for n, _ in enumerate(steps, 1)]),
        Column("", "live on, with log p", [*map(", ".join, lived)], is_words=True),
        Column("", "ended, with score", [*map(", ".join, ended)], is_words=True),
        Column("", "length penalty", _fixed([step.penalty for step in steps])),
        Column("", "best score", ["" if step.best is None else f"{step.best:.3f}" for step in steps]),
        Column("", "best hope", ["" if step.hope is None else f"{step.hope:.3f}" for step in steps]),
    )
    said = "A score is log p over the length penalty. The search ends when no hope beats the best score. It wrote: "
    return blocks(_table(*columns), Text(f"{said}“{seen.found}”."))


def _change(seen: "Explained", other: "Explained", without: str) -> tuple[Block, ...]:
    from repro.runs.explained import measures

    return blocks(
        Text(f"{WITHOUT[without]}. The weights are the same, and were not trained for this."),
        Text(f"Its search writes “{other.found}”; as trained: “{seen.found}”. Below, both read the same translation."),
        _numbers(measures(seen), measures(other), without),
        _table(
            Column("", "read", seen.read),
            Column("", "to be written", seen.written, is_words=True),
            Column("probability", "as trained", _fixed(seen.log_probs.exp())),
            Column("probability", f"without {without}", _fixed(other.log_probs.exp())),
        ),
    )


def _back(seen: "Explained", other: "Explained | None", options: argparse.Namespace) -> tuple[Block, ...]:
    from repro.runs.explained import six_answers

    changed = [one.numbers for one in six_answers(other, options.layer)] if other else [None] * 6
    lead = f"Gradients of the loss of this translation, at the encoder's attention of layer {options.layer}."
    said: list[Block] = [Text(lead)]
    for n, (one, numbers) in enumerate(zip(six_answers(seen, options.layer), changed, strict=True), 1):
        said += [Heading(f"{n}. {one.question}", 3), Text(one.says), _numbers(one.numbers, numbers, options.without)]
    return tuple(said)


def _numbers(found: Mapping[str, Any], other: Mapping[str, Any] | None, without: str) -> Table:
    """Numbers by name, beside them those of the other model."""
    both = {"as trained": found} | ({f"without {without}": other} if other else {})
    shown = {heading: [f"{float(numbers[name]):.4g}" for name in found] for heading, numbers in both.items()}
    return _table(Column("", "", [*found]), *(Column("", heading, of) for heading, of in shown.items()))


def _table(*columns: Column) -> Table:
    return Table(columns)


def _fixed(values: Iterable[Any]) -> list[str]:
    return [f"{float(value):.3f}" for value in values]


def _firsts(group: str, rows: Any) -> Iterator[Column]:
    """The first numbers of each row, a column each."""
    for n in range(min(FIRST, len(rows[0]))):
        yield Column(group, f"{n + 1}", [f"{float(row[n]):.2f}" for row in rows])
