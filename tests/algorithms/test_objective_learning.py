"""Every preset learns: twenty updates of a table of logits raise the reward it is trained on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from verigrad.algorithms import presets
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.critic import correct_weights
from verigrad.algorithms.filters import keep_rows, needs_selection, selection
from verigrad.algorithms.kl import penalized_rewards, token_rewards
from verigrad.algorithms.losses import policy_loss
from verigrad.algorithms.offline import likelihood_loss, pair_up, preference_loss
from verigrad.algorithms.reduce import token_weights
from verigrad.algorithms.returns import needs_token_advantages, token_advantages
from verigrad.algorithms.shaping import shaped_rewards
from verigrad.objective import Objective

P, G, T, V, END = 4, 16, 6, 5, 0
"""Prompts, completions each, longest completion, vocabulary; token 0 ends a completion."""


class Table:
    """logits[prompt, position, token]: the smallest policy that has prompts, lengths and an end."""

    def __init__(self, seed: int) -> None:
        self.dice = torch.Generator().manual_seed(seed)
        self.logits = torch.zeros(P, T, V, requires_grad=True)

    def sample(self) -> tuple[Tensor, Tensor, Tensor]:
        """Prompt of each row, tokens (B, T) and mask (B, T)."""
        prompt = torch.arange(P).repeat_interleave(G)
        probs = self.logits.detach().softmax(-1)[prompt]
        tokens = torch.multinomial(probs.reshape(-1, V), 1, generator=self.dice).view(-1, T)
        ended = (tokens == END).long().cumsum(-1)
        return prompt, tokens, (ended - (tokens == END).long()) == 0

    def logprobs(self, prompt: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of the tokens and entropy at each position."""
        log_p = self.logits.log_softmax(-1)[prompt]
        entropy = -(log_p.exp() * log_p).sum(-1)
        return log_p.gather(-1, tokens[..., None])[..., 0], entropy


def reward_of(prompt: Tensor, tokens: Tensor) -> Tensor:
    """1 where the first token is the one this prompt asks for."""
    return (tokens[:, 0] == prompt % (V - 1) + 1).float()


def step(o: Objective, table: Table, optimizer: torch.optim.Optimizer) -> float:
    prompt, tokens, mask = table.sample()
    reward = reward_of(prompt, tokens)
    with torch.no_grad():
        old, old_entropy = table.logprobs(prompt, tokens)
    ref = torch.full_like(old, -torch.log(torch.tensor(float(V))).item())
    shaped = shaped_rewards(reward, prompt, o, lengths_B=mask.sum(-1), max_tokens=T)
    if needs_token_advantages(o):
        rewards = token_rewards(
            shaped, o, old_logprobs_BT=old, ref_logprobs_BT=ref, completion_mask_BT=mask
        )
        value = torch.full_like(old, float(reward.mean()))
        adv = token_advantages(o, rewards_BT=rewards, mask_BT=mask, values_BT=value)[0]
    else:
        shaped = penalized_rewards(
            shaped, o, old_logprobs_BT=old, ref_logprobs_BT=ref, completion_mask_BT=mask
        )
        adv = advantages(
            shaped,
            prompt,
            o,
            lengths_B=mask.sum(-1),
            parts_BN=torch.stack([shaped, shaped * 0], 1),
            baseline_B=torch.full_like(reward, float(reward.mean())),
        )
    mask = mask & keep_rows(reward, prompt, o)[:, None]
    weights = token_weights(mask, prompt, o, max_tokens=T)
    for _ in range(2):  # two updates per rollout: the second one is off-policy
        now, entropy = table.logprobs(prompt, tokens)
        chosen = None
        if needs_selection(o):
            chosen = selection(
                o,
                completion_mask_BT=mask,
                advantages_B=adv,
                logprobs_BT=now.detach(),
                old_logprobs_BT=old,
                entropy_BT=old_entropy,
            )
        out = policy_loss(
            o,
            logprobs_BT=now,
            old_logprobs_BT=old,
            advantages_B=adv,
            weights_BT=weights,
            completion_mask_BT=mask,
            sampler_logprobs_BT=old,
            ref_logprobs_BT=ref,
            entropy_BT=entropy,
            selection=chosen,
            nll_weights_BT=correct_weights(mask, reward > 0.5),
        )
        optimizer.zero_grad()
        out.loss.backward()
        assert table.logits.grad is not None
        assert bool(table.logits.grad.isfinite().all())
        optimizer.step()
    return float(reward.mean())


ROLLOUT = [n for n in presets.names() if presets.get(n).objective.data == "rollouts"]


@pytest.mark.parametrize("name", ROLLOUT)
def test_twenty_steps_raise_the_reward(name: str) -> None:
    """From 0.2 by chance; a loss with the wrong sign, mask or ratio does not get there."""
    o = presets.resolve(name, {"pass_low": 0.0, "pass_high": 1.0})
    table = Table(seed=1)
    optimizer = torch.optim.Adam([table.logits], lr=0.1)
    curve = [step(o, table, optimizer) for _ in range(20)]
    first, last = sum(curve[:3]) / 3, sum(curve[-3:]) / 3
    assert first < 0.45
    # best_minus_second stops at two correct completions per group, and says so in its preset.
    enough = 0.15 if o.pass_at_k == "best_minus_second" else 0.3
    assert last > first + enough, curve


def test_demonstrations_are_learned() -> None:
    o, table = presets.resolve("sft", {}), Table(seed=1)
    optimizer = torch.optim.Adam([table.logits], lr=0.1)
    prompt = torch.arange(P)
    tokens = torch.stack([prompt % (V - 1) + 1, torch.zeros_like(prompt)], 1)
    tokens = torch.cat([tokens, torch.zeros(P, T - 2, dtype=torch.long)], 1)
    mask = torch.arange(T).expand(P, T) < 2
    weights = token_weights(mask, prompt, o, max_tokens=T)
    for _ in range(20):
        loss = likelihood_loss(logprobs_BT=table.logprobs(prompt, tokens)[0], weights_BT=weights)
        optimizer.zero_grad()
        loss.loss.backward()
        optimizer.step()
    sampled_prompt, sampled, _ = table.sample()
    assert float(reward_of(sampled_prompt, sampled).mean()) > 0.5


@pytest.mark.parametrize("name", ["dpo_online", "dpo_length_normalized"])
def test_pairs_of_own_rollouts_raise_the_reward(name: str) -> None:
    o = presets.resolve(name, {"preference_beta": 1.0})
    table = Table(seed=1)
    optimizer = torch.optim.Adam([table.logits], lr=0.1)
    for _ in range(20):
        prompt, tokens, mask = table.sample()
        with torch.no_grad():
            ref = torch.full_like(table.logprobs(prompt, tokens)[0], -1.6094)
        best, worst = pair_up(reward_of(prompt, tokens), prompt)
        if not len(best):
            break
        now, _ = table.logprobs(prompt, tokens)
        out = preference_loss(
            o,
            chosen_logprobs_BT=now[best],
            rejected_logprobs_BT=now[worst],
            ref_chosen_logprobs_BT=ref[best],
            ref_rejected_logprobs_BT=ref[worst],
            chosen_mask_BT=mask[best],
            rejected_mask_BT=mask[worst],
            num_pairs=len(best),
        )
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
    prompt, tokens, _ = table.sample()
    assert float(reward_of(prompt, tokens).mean()) > 0.5
