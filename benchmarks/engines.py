"""Four ways to translate with one trained run: our search, and each of its exports. How many translations are equal?

The run is exported to all three formats, each folder is opened by the library that it is for, and the first sentences
of dev are translated: greedily, with a beam and no length penalty, and with the paper's search. `safetensors` is read
back and searched by us; `huggingface` is also opened with the epsilon of its layer norms set to ours, to show the
effect of that. If translations differ, `likelier` counts which is likelier under our model, with the penalty of the
search, and `nats` is the largest such difference. Their searches are not ours: transformers divides a score by
length^alpha and not by ((5 + length) / 6)^alpha, and both count an end only among the best few candidates of a step.

Run:  python benchmarks/engines.py runs/<id> --json benchmarks/records/engines.json    (needs transformers, ctranslate2)
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from command import new_parser, save, show

from repro.decoding.ctranslate import load, translate_ctranslate2
from repro.decoding.search import PAPER_SEARCH, Search
from repro.figures.trained import dev_pairs
from repro.model.layers import NORM_EPS
from repro.results.provenance import provenance
from repro.runs.export import FORMATS, export_run
from repro.runs.load import Trained, check_translates, open_run, outputs, score_sentences
from repro.runs.refused import as_ids

SEARCHES = {
    "greedy": Search(beam=1),
    "beam 4, no penalty": Search(beam=4, alpha=0.0),
    "beam 4, alpha 0.6": PAPER_SEARCH,
}
Translator = Callable[[Sequence[str], Search], list[str]]


def ours(trained: Trained) -> Translator:
    """Our search on a run, or on its export to safetensors."""
    return lambda lines, search: [text for _, text in outputs(trained, lines, search)]


def with_ctranslate2(folder: Path, trained: Trained) -> Translator:
    """CTranslate2 on the exported folder; it gives the hypothesis that our penalty prefers."""
    translator = load(folder, threads=1)
    decode = trained.tokenizer.decode
    return lambda lines, search: [
        decode(ids) for ids in translate_ctranslate2(translator, as_ids(trained.tokenizer, lines), search)
    ]


def with_transformers(folder: Path, epsilon: float | None = None) -> Translator:
    """transformers on the exported folder, with its own tokenizer and its own search."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for part in model.modules():
        if epsilon is not None and isinstance(part, torch.nn.LayerNorm):
            part.eps = epsilon

    def translate(lines: Sequence[str], search: Search) -> list[str]:
        found = []
        for line in lines:  # one by one: each has its own limit
            asked = tokenizer([line], return_tensors="pt")
            limit = asked["input_ids"].shape[1] + search.extra + 1  # + 1 for the start symbol
            ids = model.generate(**asked, num_beams=search.beam, length_penalty=search.alpha, max_length=limit)
            found += tokenizer.batch_decode(ids, skip_special_tokens=True)
        return found

    return translate


def worth(trained: Trained, lines: Sequence[str], texts: Sequence[str], search: Search) -> list[float]:
    """The score of each translation in our search: log-probability divided by the length penalty."""
    found = score_sentences(trained, lines, texts)
    return [p / ((5 + n) / 6) ** search.alpha for p, n in zip(found.log_probs, found.n_each, strict=True)]


def compared(
    trained: Trained, lines: Sequence[str], mine: Sequence[str], other: Sequence[str], search: Search
) -> dict[str, Any]:
    """How many translations are equal, and which of the others are likelier."""
    places = [i for i, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b]
    told: dict[str, Any] = {"equal": len(lines) - len(places), "of": len(lines)}
    if not places:
        return {**told, "likelier": {"ours": 0, "theirs": 0}, "nats": 0.0, "different": []}
    asked = [lines[i] for i in places]
    scores = [worth(trained, asked, [side[i] for i in places], search) for side in (mine, other)]
    more = [a - b for a, b in zip(*scores, strict=True)]
    return {
        **told,
        "likelier": {"ours": sum(x > 0 for x in more), "theirs": sum(x < 0 for x in more)},
        "nats": max(map(abs, more)),
        "different": [
            {"line": i + 1, "ours": mine[i], "theirs": other[i], "ours_more": x}
            for i, x in zip(places, more, strict=True)
        ],
    }


def main() -> None:
    """Export, translate, compare, print and write down."""
    parser = new_parser(__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run that translates: runs/<id>")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--cache-dir", type=Path, default=Path("cache"))
    options = parser.parse_args()
    stamp, trained = provenance("cpu"), open_run(options.run)
    run = trained.record
    check_translates(run)
    lines = [source for source, _ in dev_pairs(run, options.cache_dir)[: options.sentences]]
    with tempfile.TemporaryDirectory() as folder:
        places = {to: Path(folder) / to for to in FORMATS}
        for to, place in places.items():
            export_run(run, lambda: trained, to, place)
        engines = {
            "safetensors": ours(open_run(places["safetensors"])),
            "ctranslate2": with_ctranslate2(places["ctranslate2"], trained),
            "huggingface": with_transformers(places["huggingface"]),
            "huggingface, our epsilon": with_transformers(places["huggingface"], epsilon=NORM_EPS),
        }
        found: list[dict[str, Any]] = []
        print(f"{run.row}, seed {run.seed}, {run.scale}, run {run.run}: {len(lines)} sentences of dev")
        for name, search in SEARCHES.items():
            mine = ours(trained)(lines, search)
            for engine, translate in engines.items():
                line = compared(trained, lines, mine, translate(lines, search), search)
                found.append({"search": search.settings, "engine": engine, **line})
                print(f"{name}, {engine} is done", flush=True)
    show(found, "search", "engine", "equal", "likelier", "nats")
    whose = {name: getattr(run, name) for name in ("run", "table", "row", "seed", "scale", "pair")}
    save(options.json, {"kind": "engines", **whose, "sentences": len(lines), "lines": found}, stamp)


if __name__ == "__main__":
    main()
