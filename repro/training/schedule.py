"""The learning rate. Paper: section 5.3, equation (3)."""

PAPER_WARMUP = 4_000


def rate(step: int, d_model: int, warmup: int = PAPER_WARMUP) -> float:
    """d_model^-0.5 min(step^-0.5, step warmup^-1.5) of the optimizer step with this number (from 1).

    Where warm-up is shorter than the paper's, time is compressed: the paper's curve is walked through
    4000 / warmup times as fast, so it keeps its shape and its peak, (4000 d_model)^-0.5. (The printed formula
    with a small warmup has a peak that grows without bound; at 4000 the two are the same, to the digit.)
    """
    if step < 1:
        raise ValueError(f"Optimizer steps are counted from 1, got {step}.")
    paper_step = step * (PAPER_WARMUP / warmup)
    return float(d_model**-0.5 * min(paper_step**-0.5, paper_step * PAPER_WARMUP**-1.5))
