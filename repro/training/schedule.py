"""The learning rate. Paper: section 5.3, equation (3)."""


def rate(step: int, d_model: int, warmup: int, factor: float = 1.0, *, rises: bool = True) -> float:
    """factor d_model^-0.5 min(step^-0.5, step warmup^-1.5), where `step` is the number of the optimizer step, from 1.

    It rises to its peak, factor (d_model warmup)^-0.5, at step `warmup`; without `rises` it is at the peak until
    then. In the paper it rises and the factor is 1.
    """
    if step < 1:
        raise ValueError(f"Optimizer steps are counted from 1, got {step}.")
    before = step * warmup**-1.5 if rises else warmup**-0.5
    return float(factor * d_model**-0.5 * min(step**-0.5, before))
