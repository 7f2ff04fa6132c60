"""Claim: a critic of policy size doubles the trained state, and most of the peak memory follows it.

Run: python bench/critic_memory.py (a minute). Each arm is a process of its own with a model of the
lab model's size (SmolLM2-135M, random weights, float32), AdamW and one whole update: GRPO's policy
loss, or PPO's policy loss and a critic (the same body, a value head) with its clipped value loss
and GAE. Trained state is weights + gradients + Adam moments, counted; peak memory is the process's
own high-water mark above what it had before the first model. Writes critic_memory.json beside this
file.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

ROWS, TOKENS = 8, 96


def peak_bytes() -> int:
    """This process's high-water mark of resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def state_bytes(model: Any, optimizer: Any) -> int:
    """Weights, gradients and optimiser moments in bytes."""
    total = 0
    for p in model.parameters():
        total += p.numel() * p.element_size()
        total += p.grad.numel() * p.grad.element_size() if p.grad is not None else 0
    for state in optimizer.state.values():
        for value in state.values():
            total += value.numel() * value.element_size() if value.dim() else 0
    return total


def model_config() -> Any:
    """The shape of SmolLM2-135M."""
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=576,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        intermediate_size=1536,
        vocab_size=49152,
        tie_word_embeddings=True,
    )


def critic_update(ids: Any, mask: Any, rewards: Any, weights: Any) -> tuple[Any, list[Any], int]:
    """One update of a critic of policy size: advantages, what must stay alive, its trained
    state."""
    import torch
    from transformers import LlamaModel

    from verigrad.algorithms import presets
    from verigrad.algorithms.critic import value_loss
    from verigrad.algorithms.kl import token_rewards
    from verigrad.algorithms.returns import token_advantages

    o = presets.resolve("ppo", {})
    body, head = LlamaModel(model_config()), torch.nn.Linear(576, 1)
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-5)
    values = head(body(ids).last_hidden_state)[:, :-1, 0]
    outcome = token_rewards(
        rewards,
        o,
        old_logprobs_BT=values.detach(),
        ref_logprobs_BT=None,
        completion_mask_BT=mask,
    )
    adv, targets = token_advantages(o, rewards_BT=outcome, mask_BT=mask, values_BT=values)
    value_loss(
        o,
        values_BT=values,
        old_values_BT=values.detach(),
        targets_BT=targets,
        weights_BT=weights,
    ).loss.backward()
    optimizer.step()
    return adv, [body, head, optimizer], state_bytes(body, optimizer)


def arm(name: str) -> dict[str, Any]:
    """One update of ``grpo`` or ``ppo``; what it held."""
    import torch
    from transformers import LlamaForCausalLM

    from verigrad.algorithms import presets
    from verigrad.algorithms.advantages import advantages
    from verigrad.algorithms.losses import policy_loss
    from verigrad.algorithms.reduce import token_weights

    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = peak_bytes()
    o = presets.resolve("ppo" if name == "ppo" else "dr_grpo", {})
    ids = torch.randint(0, 49152, (ROWS, TOKENS))
    mask = torch.ones(ROWS, TOKENS - 1, dtype=torch.bool)
    group, rewards = torch.arange(ROWS) // 4, (torch.arange(ROWS) % 2).float()
    weights = token_weights(mask, group, o, max_tokens=TOKENS)
    policy = LlamaForCausalLM(model_config())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    alive: list[Any] = []
    critic_state = 0
    if name == "ppo":
        adv, alive, critic_state = critic_update(ids, mask, rewards, weights)
    else:
        adv = advantages(rewards, group, o, lengths_B=mask.sum(-1))
    logits = policy(ids[:, :-1]).logits
    logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    policy_loss(
        o,
        logprobs_BT=logprobs,
        old_logprobs_BT=logprobs.detach(),
        advantages_B=adv,
        weights_BT=weights,
        completion_mask_BT=mask,
    ).loss.backward()
    optimizer.step()
    alive.clear()
    return {
        "arm": name,
        "trained_state_mib": round((state_bytes(policy, optimizer) + critic_state) / 2**20),
        "peak_mib": round((peak_bytes() - before) / 2**20),
    }


def main() -> int:
    """Run both arms, print and write the ratios."""
    if len(sys.argv) > 1:
        print(json.dumps(arm(sys.argv[1])))
        return 0
    found: dict[str, dict[str, Any]] = {}
    for name in ("grpo", "ppo"):
        done = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, check=True
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(found[name])
    record = {
        "model": "SmolLM2-135M's shape, float32, AdamW",
        "batch": f"{ROWS} completions of {TOKENS} tokens",
        "arms": found,
        "trained_state_grpo_over_ppo": round(
            found["grpo"]["trained_state_mib"] / found["ppo"]["trained_state_mib"], 3
        ),
        "peak_grpo_over_ppo": round(found["grpo"]["peak_mib"] / found["ppo"]["peak_mib"], 3),
    }
    print(record["trained_state_grpo_over_ppo"], record["peak_grpo_over_ppo"])
    (HERE / "critic_memory.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
