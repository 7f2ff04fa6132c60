"""From token losses to one number. Shapes: B completions, T completion tokens.

The weight of every token is computed once over the whole optimiser batch, so that
``loss = sum(per_token_loss * weights)`` and a micro-batch is an exact slice of it: its gradient
does not depend on how the batch was cut, padded or ordered.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verigrad.algorithms.groups import number_groups
from verigrad.objective import Objective


def token_weights(
    completion_mask_BT: Tensor, group_index_B: Tensor, objective: Objective, *, max_tokens: int
) -> Tensor:
    """Weight of each token in the loss: (B, T) float32, 0 outside the mask.

    ``max_tokens`` is the longest completion allowed (the constant reduction divides by it unless
    constant_length is set). With n completions that have at least one trained token, P groups of
    them and |y| trained tokens in completion y:

    sequence_mean 1/(n |y|), token_mean 1/sum|y|, constant 1/(n L), prompt_mean 1/(P * tokens of the
    group), sequence_sum 1/n. A completion without trained tokens counts in none of these, so
    masking one is the same as never having sampled it. Sources: DeepSeekMath, DAPO, Dr. GRPO,
    ScaleRL, LUSPO.
    """
    mask_BT = completion_mask_BT.to(torch.float64)
    length_B = mask_BT.sum(-1)
    num_rows = (length_B > 0).sum().clamp(min=1)
    if objective.reduction == "sequence_mean":
        weight_B = 1 / (num_rows * length_B.clamp(min=1))
    elif objective.reduction == "token_mean":
        weight_B = (1 / length_B.sum().clamp(min=1)).expand_as(length_B)
    elif objective.reduction == "constant":
        length = objective.constant_length or max_tokens
        weight_B = (1 / (num_rows * length)).expand_as(length_B)
    elif objective.reduction == "prompt_mean":
        groups = number_groups(group_index_B)
        tokens_K = groups.sum(length_B)
        num_groups = (tokens_K > 0).sum().clamp(min=1)
        weight_B = (1 / (num_groups * tokens_K.clamp(min=1)))[groups.row_B]
    else:
        weight_B = (1 / num_rows).to(torch.float64).expand_as(length_B)
    return (mask_BT * weight_B[:, None]).to(torch.float32)
