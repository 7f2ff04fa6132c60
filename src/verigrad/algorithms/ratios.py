"""Importance ratios: how much likelier a token has become. Shapes: B completions, T tokens.

Four policies, four prefixes: ``logprobs`` (now), ``old_logprobs`` (start of this update),
``sampler_logprobs`` (the engine that sampled), ``ref_logprobs`` (frozen).
"""

from __future__ import annotations

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to +-20 nats (a factor of 5e8) before they are exponentiated, so that an
extreme one gives a large finite number. Inside the clamp nothing changes; beyond it the gradient is
0."""


def log_ratio(logprobs_BT: Tensor, other_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """log(policy / other) per token, clamped to +-20, and exactly 0 outside the mask: (B, T).

    Padding may hold anything, infinities included: it is replaced before it is subtracted.
    """
    mask_BT = mask_BT.bool()
    now_BT = torch.where(mask_BT, logprobs_BT, 0.0)
    other_BT = torch.where(mask_BT, other_BT, 0.0)
    return (now_BT - other_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def sequence_mean_log(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean log-ratio over the tokens of each completion: (B, 1); 0 for an empty one."""
    mask = mask_BT.to(log_ratio_BT.dtype)
    return (log_ratio_BT * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)


def token_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """pi / pi_old of each token: log-ratio unchanged (B, T). DeepSeekMath eq. 3."""
    return log_ratio_BT


def sequence_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Log of the geometric mean of a completion's ratios, at each of its tokens. GSPO eq. 7."""
    return sequence_mean_log(log_ratio_BT, mask_BT).expand_as(log_ratio_BT)


def sequence_token_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Value of sequence_ratio, gradient of the token's own log-probability. GSPO-token eq. 14."""
    value = sequence_mean_log(log_ratio_BT, mask_BT).detach()
    return value + log_ratio_BT - log_ratio_BT.detach()


def product_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Log of the whole completion's ratio (the sum), clamped to +-20, at each of its tokens."""
    total = (log_ratio_BT * mask_BT.to(log_ratio_BT.dtype)).sum(-1, keepdim=True)
    return total.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).expand_as(log_ratio_BT)


LEVELS = {
    "token": token_ratio,
    "sequence": sequence_ratio,
    "sequence_token": sequence_token_ratio,
    "product": product_ratio,
}
"""The ratio axis: name to function of (log-ratio, mask), returning a log-ratio per token."""
