"""Translate standard input with this folder and PyTorch alone.

Run: python example.py < text > translations

The Transformer as printed, in one screen, with greedy search. S source and T target tokens, D d_model.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

FOLDER = Path(__file__).parent
END, EXTRA = 1, 50  # the end symbol; at most so many tokens more than the source
W = load_file(FOLDER / "model.safetensors")
HYPER = json.loads((FOLDER / "record.json").read_bytes())["hyper"]
HEADS, KEYS, WIDTH = HYPER["n_heads"], HYPER["d_k"], HYPER["d_model"]


def attend(name: str, x: Tensor, memory: Tensor, causal: bool = False) -> Tensor:
    """x [T, D] asks memory [S, D]; section 3.2."""
    wq, wkv = W[f"{name}.weight"].split([HEADS * KEYS, len(W[f"{name}.weight"]) - HEADS * KEYS])
    bq, bkv = W[f"{name}.bias"].split([len(wq), len(wkv)])
    k, v = F.linear(memory, wkv, bkv).split([len(wq), len(wkv) - len(wq)], dim=-1)
    q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(0, 1) for part in (F.linear(x, wq, bq), k, v))
    scores = q @ k.transpose(1, 2) * KEYS**-0.5
    if causal:
        scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf)
    heads = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    return F.linear(heads, W[f"{name}.output.weight"], W[f"{name}.output.bias"])


def feed(name: str, x: Tensor) -> Tensor:
    """max(0, x W_1 + b_1) W_2 + b_2; section 3.3."""
    up = F.relu(F.linear(x, W[f"{name}.0.weight"], W[f"{name}.0.bias"]))
    return F.linear(up, W[f"{name}.2.weight"], W[f"{name}.2.bias"])


def norm(name: str, x: Tensor) -> Tensor:
    """LayerNorm of the sum; section 3.1."""
    return F.layer_norm(x, [WIDTH], W[f"{name}.weight"], W[f"{name}.bias"], eps=1e-6)


def embedded(ids: list[int], side: str) -> Tensor:
    """Tokens and positions; sections 3.4 and 3.5. Id 0 is the zero vector that the decoder reads first."""
    rows = torch.tensor(ids)
    x = W["embedding.weight"][rows] * WIDTH**0.5 * (rows != 0)[:, None]
    if HYPER["learned_positions"]:
        return x + W[f"{side}_positions.weight"][: len(ids)]
    angle = torch.arange(len(ids)).double()[:, None] / 10_000 ** (torch.arange(0, WIDTH, 2).double() / WIDTH)
    return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


@torch.inference_mode()
def greedy(source: list[int]) -> list[int]:
    """The likeliest token again and again, until it is the end symbol."""
    memory = embedded(source, "source")
    for i in range(HYPER["n_layers"]):
        memory = norm(f"encoder.{i}.norms.0", memory + attend(f"encoder.{i}.self_attention", memory, memory))
        memory = norm(f"encoder.{i}.norms.1", memory + feed(f"encoder.{i}.feed_forward", memory))
    written = [0]
    while len(written) <= len(source) + EXTRA:
        x = embedded(written, "target")
        for i in range(HYPER["n_layers"]):
            x = norm(f"decoder.{i}.norms.0", x + attend(f"decoder.{i}.self_attention", x, x, causal=True))
            x = norm(f"decoder.{i}.norms.1", x + attend(f"decoder.{i}.cross_attention", x, memory))
            x = norm(f"decoder.{i}.norms.2", x + feed(f"decoder.{i}.feed_forward", x))
        following = int((W["embedding.weight"] @ x[-1])[1:].argmax()) + 1  # id 0 is never written
        if following == END:
            break
        written.append(following)
    return written[1:]


def main() -> None:
    """Line by line; a line without text stays one."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    for line in (line.rstrip("\n") for line in sys.stdin):
        print(tokenizer.decode(greedy([*tokenizer.encode(line).ids, END])) if line.strip() else "")


if __name__ == "__main__":
    main()
