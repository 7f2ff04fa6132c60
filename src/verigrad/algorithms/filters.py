"""What is trained on: groups, completions, tokens. Shapes: B completions, T completion tokens.

Groups are filtered while they are drawn (keep_rows, more_groups), completions when masks are made
(trained_mask), tokens once per optimiser batch (selection). Every function says what it left out,
so that the log can count it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from verigrad.algorithms.entropy import top_entropy
from verigrad.algorithms.groups import number_groups, silent_rows
from verigrad.errors import UsageError
from verigrad.objective import Objective


@dataclass(frozen=True, slots=True)
class Selection:
    """Tokens chosen over a whole optimiser batch; ``rows`` gives the part of a micro-batch.

    ``train_BT`` is 1 where the policy loss counts. ``penalize_BT`` is 1 where kl_cov adds its
    penalty. The reduction's denominators do not change: a token left out counts as a loss of 0.
    """

    train_BT: Tensor
    penalize_BT: Tensor

    def rows(self, index: slice | Tensor) -> Selection:
        """The same selection for these rows."""
        return Selection(self.train_BT[index], self.penalize_BT[index])


def needs_selection(objective: Objective) -> bool:
    """Whether :func:`selection` has anything to choose (then its inputs must be computed)."""
    return objective.entropy_quantile < 1 or objective.trust_region in ("clip_cov", "kl_cov")


def selection(
    objective: Objective,
    *,
    completion_mask_BT: Tensor,
    advantages_B: Tensor,
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor | None = None,
    entropy_BT: Tensor | None = None,
    noise_BT: Tensor | None = None,
) -> Selection:
    """Choose tokens over the whole optimiser batch; call once, before it is cut into micro-batches.

    entropy_quantile: the tokens of highest entropy (2506.01939). clip_cov: ``cov_frac`` of all
    tokens, among those whose covariance (A - mean A)(log pi - mean log pi) lies in (cov_low,
    cov_high) and that the clip does not hold anyway, get no gradient; the paper draws them at
    random, so pass ``noise_BT`` (any uniform numbers, lowest first) - without it those of highest
    covariance are taken. kl_cov: the ``cov_frac`` of highest covariance are penalised instead
    (2505.22617). At least one token is chosen.
    """
    mask_BT = completion_mask_BT.bool()
    train_BT = mask_BT
    penalize_BT = torch.zeros_like(mask_BT)
    if objective.entropy_quantile < 1:
        if entropy_BT is None:
            raise UsageError(
                f"objective.entropy_quantile = {objective.entropy_quantile} needs entropy_BT, the "
                "entropy at each token; compute it, or set entropy_quantile = 1."
            )
        train_BT = top_entropy(entropy_BT.detach(), mask_BT, objective.entropy_quantile)
    if objective.trust_region in ("clip_cov", "kl_cov") and bool(mask_BT.any()):
        adv_BT = (
            advantages_B if advantages_B.dim() == 2 else advantages_B[:, None].expand(mask_BT.shape)
        )
        cov_BT = covariance(adv_BT, logprobs_BT.detach(), mask_BT)
        count = max(int(objective.cov_frac * int(mask_BT.sum())), 1)
        if objective.trust_region == "kl_cov":
            penalize_BT = _highest(cov_BT, mask_BT, count)
        else:
            old_BT = logprobs_BT if old_logprobs_BT is None else old_logprobs_BT
            free_BT = mask_BT & ~_clipped(objective, adv_BT, logprobs_BT.detach() - old_BT)
            free_BT = free_BT & (cov_BT > objective.cov_low) & (cov_BT < objective.cov_high)
            order_BT = cov_BT if noise_BT is None else -noise_BT
            train_BT = train_BT & ~_highest(order_BT, free_BT, count)
    return Selection(train_BT.to(torch.float32), penalize_BT.to(torch.float32))


def covariance(adv_BT: Tensor, logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """(A - mean A)(log pi - mean log pi) per token, means over the batch's tokens: (B, T)
    float64."""
    adv, logprobs = adv_BT.to(torch.float64), logprobs_BT.to(torch.float64)
    mean_adv, mean_logprob = adv[mask_BT].mean(), logprobs[mask_BT].mean()
    return torch.where(mask_BT, (adv - mean_adv) * (logprobs - mean_logprob), -torch.inf)


def _clipped(objective: Objective, adv_BT: Tensor, log_ratio_BT: Tensor) -> Tensor:
    ratio = log_ratio_BT.exp()
    up = (adv_BT > 0) & (ratio > 1 + objective.clip_high)
    return up | ((adv_BT < 0) & (ratio < 1 - objective.clip_low))


def _highest(order_BT: Tensor, among_BT: Tensor, count: int) -> Tensor:
    """True for the ``count`` positions of highest order among those allowed."""
    chosen = torch.zeros_like(among_BT).flatten()
    allowed = among_BT.flatten().nonzero().squeeze(-1)
    if allowed.numel():
        values = order_BT.flatten()[allowed]
        chosen[allowed[values.topk(min(count, allowed.numel())).indices]] = True
    return chosen.view_as(among_BT)


def trained_mask(completion_mask_BT: Tensor, truncated_B: Tensor, objective: Objective) -> Tensor:
    """The completion mask without truncated rows where mask_truncated says so: (B, T) bool.

    They stay in their group's statistics, and leave the loss and the reduction's denominators
    (DAPO's overlong filtering). OLMo 3.1 and Skywork-OR1 train on them.
    """
    mask_BT = completion_mask_BT.bool()
    return mask_BT & ~truncated_B.bool()[:, None] if objective.mask_truncated else mask_BT


def keep_rows(rewards_B: Tensor, group_index_B: Tensor, objective: Objective) -> Tensor:
    """True for rows of groups that are trained on: (B,) bool.

    Every filter but none drops groups of equal rewards; pass_low and pass_high are a difficulty
    band on the group's mean reward.
    """
    keep_B = torch.ones_like(group_index_B, dtype=torch.bool)
    if objective.group_filter == "none":
        return keep_B
    keep_B = keep_B & ~silent_rows(rewards_B, group_index_B)
    groups = number_groups(group_index_B)
    mean_B = groups.mean(rewards_B.to(torch.float64))[groups.row_B]
    # Rewards below 0 or above 1 have no pass rate: the untouched band holds all of them.
    if objective.pass_low > 0:
        keep_B = keep_B & (mean_B >= objective.pass_low)
    if objective.pass_high < 1:
        keep_B = keep_B & (mean_B <= objective.pass_high)
    return keep_B


def more_groups(objective: Objective, *, wanted: int, kept: int, rounds: int) -> int:
    """How many groups to draw next, given how many are kept after ``rounds`` rounds; 0 to go on.

    resample draws a whole round of ``wanted`` prompts again (DAPO); refill draws as many as are
    missing (OLMo's active sampling). Both stop after filter_rounds rounds, so that a data set on
    which every group is silent ends instead of hanging; the step then runs with fewer groups.
    """
    if objective.group_filter not in ("resample", "refill"):
        return 0
    if kept >= wanted or rounds >= objective.filter_rounds:
        return 0
    return wanted if objective.group_filter == "resample" else wanted - kept


def retired(objective: Objective, pass_rate: float) -> bool:
    """Whether a problem with this pass rate is not drawn again (ScaleRL: 0.9; open-instruct:
    0.875)."""
    return objective.retire_pass_rate is not None and pass_rate >= objective.retire_pass_rate
