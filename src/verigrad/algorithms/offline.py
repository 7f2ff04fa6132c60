"""The offline neighbours: SFT, RAFT, DPO. Shapes: B rows (or pairs), T completion tokens.

SFT is -log pi on demonstrations, RAFT the same on correct rollouts; both are the policy loss with
an advantage of 1. DPO compares the two sides of a pair.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from verigrad.algorithms.groups import number_groups
from verigrad.algorithms.losses import LossOutput
from verigrad.objective import Objective


def likelihood_loss(
    *, logprobs_BT: Tensor, weights_BT: Tensor, keep_B: Tensor | None = None
) -> LossOutput:
    """-sum(log pi * weight), over the rows kept: SFT, or RAFT where ``keep_B`` marks correct ones.

    ``weights_BT`` comes from ``reduce.token_weights`` of the rows that count, over the whole batch.
    Gradient coefficient 1 in DeepSeekMath's unified view (2402.03300 table 10).
    """
    if keep_B is not None:
        weights_BT = weights_BT * keep_B.to(weights_BT.dtype)[:, None]
    mask_BT = weights_BT > 0
    nll_BT = -torch.where(mask_BT, logprobs_BT, 0.0)
    loss = (nll_BT * weights_BT).sum()
    stats = {"tokens": mask_BT.sum(), "nll": nll_BT.detach().sum(), "loss_nll": loss.detach()}
    return LossOutput(loss, stats)


def preference_loss(
    objective: Objective,
    *,
    chosen_logprobs_BT: Tensor,
    rejected_logprobs_BT: Tensor,
    ref_chosen_logprobs_BT: Tensor,
    ref_rejected_logprobs_BT: Tensor,
    chosen_mask_BT: Tensor,
    rejected_mask_BT: Tensor,
    num_pairs: int,
) -> LossOutput:
    """-log sigmoid(beta (log pi/ref(chosen) - log pi/ref(rejected))), summed over pairs /
    num_pairs.

    ``num_pairs`` counts the pairs of the whole optimiser batch, so that micro-batches add up.
    preference_length_normalized divides each side by its tokens (OLMo 3, Tulu 3); preference_nll
    adds -log pi(chosen) per token (Iterative RPO). DPO 2305.18290 eq. 7. stats are sums over pairs:
    pairs, margin (implicit reward difference), accuracy (pairs ranked right), chosen and rejected
    (their implicit rewards), loss_preference and loss_nll.
    """
    beta = objective.preference_beta
    chosen_B, length_B = _side(chosen_logprobs_BT, ref_chosen_logprobs_BT, chosen_mask_BT)
    rejected_B, other_B = _side(rejected_logprobs_BT, ref_rejected_logprobs_BT, rejected_mask_BT)
    if objective.preference_length_normalized:
        chosen_B, rejected_B = chosen_B / length_B, rejected_B / other_B
    margin_B = beta * (chosen_B - rejected_B)
    preference = -F.logsigmoid(margin_B).sum() / num_pairs
    nll_B = -torch.where(chosen_mask_BT.bool(), chosen_logprobs_BT, 0.0).sum(-1) / length_B
    nll = objective.preference_nll * nll_B.sum() / num_pairs
    stats = {
        "pairs": torch.tensor(margin_B.numel()),
        "margin": margin_B.detach().sum(),
        "accuracy": (margin_B.detach() > 0).sum(),
        "chosen": (beta * chosen_B).detach().sum(),
        "rejected": (beta * rejected_B).detach().sum(),
        "loss_preference": preference.detach(),
        "loss_nll": nll.detach(),
    }
    return LossOutput(preference + nll, stats)


def _side(logprobs_BT: Tensor, ref_BT: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Summed log-ratio to the reference and token count of each completion: two (B,) tensors."""
    mask_BT = mask_BT.bool()
    ratio_BT = torch.where(mask_BT, logprobs_BT, 0.0) - torch.where(mask_BT, ref_BT, 0.0).detach()
    return ratio_BT.sum(-1), mask_BT.sum(-1).clamp(min=1).to(ratio_BT.dtype)


def pair_up(rewards_B: Tensor, group_index_B: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of preferred and rejected completions, paired within groups: two equally long (N,)
    tensors.

    In each group the best is paired with the worst, the second best with the second worst, and so
    on while their rewards differ. Groups of equal rewards give no pair. Online DPO, 2402.04792.
    """
    groups = number_groups(group_index_B)
    chosen: list[int] = []
    rejected: list[int] = []
    for label in range(groups.num):
        rows = (groups.row_B == label).nonzero().squeeze(-1)
        order_G = rows[rewards_B[rows].argsort(descending=True, stable=True)]
        order = [int(row) for row in order_G]
        for best, worst in zip(order, reversed(order), strict=True):
            if float(rewards_B[best]) <= float(rewards_B[worst]):
                break
            chosen.append(best)
            rejected.append(worst)
    device = rewards_B.device
    return (
        torch.tensor(chosen, dtype=torch.long, device=device),
        torch.tensor(rejected, dtype=torch.long, device=device),
    )
