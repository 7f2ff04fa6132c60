"""Pairs with TRL: its own ``_compute_loss`` and reward scaling, run on our random batches."""

from __future__ import annotations

import inspect
import textwrap
from collections import defaultdict
from types import MethodType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer

from peer_pairs import MAX_TOKENS, Compute, Pair, Ragged, our_loss
from verigrad.algorithms.advantages import advantages
from verigrad.algorithms.shaping import repetition, soft_overlong
from verigrad.objective import Objective


class _Alone:
    """A process group of one."""

    num_processes = 1
    sync_gradients = False

    def gather(self, x: Tensor) -> Tensor:
        return x

    def reduce(self, x: Tensor, reduction: str = "sum") -> Tensor:
        return x

    def pad_across_processes(self, x: Tensor, dim: int = 0, pad_index: float = 0) -> Tensor:
        return x


_ARGS = {
    "use_bias_correction_kl": False,
    "delta": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "steps_per_generation": 1,
    "entropy_target": 0.2,
}
_SELF = {
    "aux_loss_enabled": False,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
    "importance_sampling_level": "token",
    "beta": 0.0,
    "loss_type": "grpo",
    "epsilon_low": 0.2,
    "epsilon_high": 0.2,
    "use_vllm": False,
    "vllm_importance_sampling_correction": True,
    "current_gradient_accumulation_steps": 1,
    "max_completion_length": MAX_TOKENS,
    "_entropy_bonus_enabled": False,
    "use_adaptive_entropy": False,
    "entropy_coef": 0.0,
}


def trl_loss(
    trainer: type = GRPOTrainer, *, correction: str | None = None, **settings: Any
) -> Compute:
    """TRL's loss with these trainer attributes or config fields, the model's forward replaced."""
    args = SimpleNamespace(**{**_ARGS, **{k: v for k, v in settings.items() if k in _ARGS}})
    own = {**_SELF, **{k: v for k, v in settings.items() if k not in _ARGS}}

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        fake = SimpleNamespace(
            **own,
            args=args,
            accelerator=_Alone(),
            model=SimpleNamespace(training=True),
            _metrics={"train": defaultdict(list)},
            get_off_policy_mask=GRPOTrainer.get_off_policy_mask,
            get_gamma_weights=GRPOTrainer.get_gamma_weights,
            _get_per_token_logps_and_entropies=lambda *a, **k: (logprobs, b.entropy, None),
        )
        fake.get_high_entropy_mask = MethodType(GRPOTrainer.get_high_entropy_mask, fake)
        mask = b.mask.to(torch.float64)
        ids = torch.zeros_like(b.mask, dtype=torch.long)
        inputs = {
            "prompt_ids": ids[:, :1],
            "prompt_mask": mask[:, :1],
            "completion_ids": ids,
            "completion_mask": mask,
            "advantages": b.advantages,
            "old_per_token_logps": b.old,
            "ref_per_token_logps": b.ref,
            "num_items_in_batch": mask.sum(),
        }
        if own["off_policy_mask_threshold"] is not None:
            inputs["sampling_per_token_logps"] = b.sampler
        if correction:
            fake.use_vllm = True
            inputs["importance_sampling_ratio"] = _correction(b, mask, correction)
        return trainer._compute_loss(fake, None, inputs)

    return compute


def _block(start: str, end: str) -> str:
    """TRL's own lines between two markers of its rollout step, ready to run."""
    source = inspect.getsource(GRPOTrainer._generate_and_score_completions).splitlines()
    first = next(i for i, line in enumerate(source) if start in line)
    last = next(i for i, line in enumerate(source) if i > first and end in line)
    return textwrap.dedent("\n".join(source[first:last]))


def _correction(b: Ragged, mask: Tensor, mode: str) -> Tensor:
    from types import SimpleNamespace as Namespace

    import trl.trainer.grpo_trainer as module

    code = _block(
        "per_token_logps_diff = (old_per", "# Compute the per-token log probabilities for the ref"
    )
    scope = {
        **vars(module),
        "mask": mask,
        "old_per_token_logps": b.old,
        "sampling_per_token_logps": b.sampler,
        "self": Namespace(
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=0.7,
            vllm_importance_sampling_clip_max=1.4,
        ),
    }
    exec(code, scope)
    return scope["vllm_importance_sampling_ratio"]


def trl_advantages(**settings: Any) -> Compute:
    """TRL's reward scaling, by running its own block."""
    code = _block("unscorable_mask = torch.isnan", "# Slice to keep only the local part")

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        import trl.trainer.grpo_trainer as module

        own = {"scale_rewards": "group", "multi_objective_aggregation": "sum_then_normalize"}
        parts = b.parts if settings.get("multi_objective_aggregation") else b.rewards[:, None]
        fake = SimpleNamespace(
            **{**own, **settings},
            reward_weights=torch.ones(parts.shape[1], dtype=torch.float64),
            reward_funcs=[None] * parts.shape[1],
        )
        scope = {
            **vars(module),
            "self": fake,
            "rewards_per_func": parts.clone(),
            "num_generations": b.size,
            "device": "cpu",
        }
        exec(code, scope)
        return scope["advantages"]

    return compute


def our_advantages(**axes: Any) -> Compute:
    """Our advantages; TRL's epsilon is 1e-4."""
    o = Objective(**{"std_eps": 1e-4, **axes})

    def compute(b: Ragged, logprobs: Tensor) -> Tensor:
        return advantages(b.rewards, b.group, o, lengths_B=b.mask.sum(-1), parts_BN=b.parts)

    return compute


def _clip(**axes: Any) -> Compute:
    return our_loss(Objective(**{"clip_high": 0.2, "dual_clip": None, **axes}))


def pairs() -> list[Pair]:
    """Every loss type, importance level, scale option and correction of TRL's GRPO trainer."""
    dapo: dict[str, Any] = {"loss_type": "dapo", "epsilon_high": 0.28}
    rows = _loss_types(dapo) + _options(dapo)
    out = [Pair("trl", name, ours, theirs) for name, ours, theirs in rows]
    return out + _advantage_pairs() + _reward_pairs() + _deviations(dapo)


Row = tuple[str, Compute, Compute]


def _loss_types(dapo: dict[str, Any]) -> list[Row]:
    seq = {"reduction": "sequence_mean"}
    weighed = {"trust_region": "clip_weight", "clip_low": 1.0, "clip_high": 4.0}
    return [
        ("loss_type=grpo", _clip(**seq), trl_loss()),
        ("loss_type=bnpo", _clip(), trl_loss(loss_type="bnpo")),
        ("loss_type=dr_grpo", _clip(reduction="constant"), trl_loss(loss_type="dr_grpo")),
        ("loss_type=dapo", _clip(clip_high=0.28), trl_loss(**dapo)),
        (
            "loss_type=cispo, epsilon_high=5",
            _clip(**weighed),
            trl_loss(loss_type="cispo", epsilon_high=5.0),
        ),
        ("loss_type=sapo", _clip(trust_region="soft_gate", **seq), trl_loss(loss_type="sapo")),
        (
            "loss_type=luspo, sequence",
            _clip(ratio="sequence", reduction="sequence_sum", clip_low=2e-3, clip_high=2.5e-3),
            trl_loss(
                loss_type="luspo",
                importance_sampling_level="sequence",
                epsilon_low=2e-3,
                epsilon_high=2.5e-3,
            ),
        ),
        (
            "loss_type=vespo",
            _clip(trust_region="gamma_weight", ratio="product"),
            trl_loss(loss_type="vespo"),
        ),
    ]


def _options(dapo: dict[str, Any]) -> list[Row]:
    from trl.experimental.gmpo.gmpo_trainer import GMPOTrainer

    seq = {"reduction": "sequence_mean"}
    entropy = {"_entropy_bonus_enabled": True, "entropy_coef": 0.01}
    fixed = {"correction_low": 0.7, "correction_high": 1.4}
    return [
        (
            "importance_sampling_level=sequence",
            _clip(ratio="sequence", clip_low=3e-4, clip_high=4e-4, **seq),
            trl_loss(importance_sampling_level="sequence", epsilon_low=3e-4, epsilon_high=4e-4),
        ),
        ("delta=1.5", _clip(clip_high=0.28, dual_clip=1.5), trl_loss(delta=1.5, **dapo)),
        ("beta, k3", _clip(kl="k3", kl_coef=0.04, **seq), trl_loss(beta=0.04)),
        (
            "beta, bias corrected",
            _clip(kl="unbiased_k3", kl_coef=0.04, **seq),
            trl_loss(beta=0.04, use_bias_correction_kl=True),
        ),
        (
            "top_entropy_quantile=0.2",
            _clip(clip_high=0.28, entropy_quantile=0.2),
            trl_loss(top_entropy_quantile=0.2, **dapo),
        ),
        (
            "off_policy_mask_threshold",
            _clip(negative_mask=0.02, **seq),
            trl_loss(off_policy_mask_threshold=0.02),
        ),
        (
            "entropy bonus",
            _clip(clip_high=0.28, entropy="bonus", entropy_coef=0.01),
            trl_loss(**dapo, **entropy),
        ),
        (
            "gmpo",
            _clip(trust_region="geometric_clip", clip_low=0.4, clip_high=0.4, **seq),
            trl_loss(GMPOTrainer, epsilon_low=0.4, epsilon_high=0.4),
        ),
        *[
            (
                f"vllm correction {theirs}",
                _clip(clip_high=0.28, correction=ours, **limits),
                trl_loss(correction=theirs, **dapo),
            )
            for theirs, ours, limits in (
                ("token_mask", "mask_token", fixed),
                ("sequence_mask", "mask_sequence", fixed),
            )
        ],
    ]


def _advantage_pairs() -> list[Pair]:
    rows = [
        ("scale_rewards=group", our_advantages(scale="group_std"), trl_advantages()),
        (
            "scale_rewards=batch",
            our_advantages(scale="batch_std"),
            trl_advantages(scale_rewards="batch"),
        ),
        ("scale_rewards=none", our_advantages(), trl_advantages(scale_rewards="none")),
        (
            "normalize_then_sum",
            our_advantages(parts="normalize_each", scale="batch_std"),
            trl_advantages(multi_objective_aggregation="normalize_then_sum"),
        ),
    ]
    return [Pair("trl", name, ours, theirs, kind="value") for name, ours, theirs in rows]


def _reward_pairs() -> list[Pair]:
    from trl.rewards import get_repetition_penalty_reward, get_soft_overlong_punishment

    def rows(b: Ragged) -> list[list[int]]:
        ids = (b.entropy * 4).long()
        return [ids[i, : int(b.mask[i].sum())].tolist() for i in range(len(ids))]

    def overlong(b: Ragged, _: Tensor) -> Tensor:
        return soft_overlong(b.mask.sum(-1), max_tokens=MAX_TOKENS, cache=8)

    def trl_overlong(b: Ragged, _: Tensor) -> Tensor:
        f = get_soft_overlong_punishment(max_completion_len=MAX_TOKENS, soft_punish_cache=8)
        return torch.tensor(f(completion_ids=rows(b)))

    def repeated(b: Ragged, _: Tensor) -> Tensor:
        return -repetition(rows(b), n=3)

    def trl_repeated(b: Ragged, _: Tensor) -> Tensor:
        f = get_repetition_penalty_reward(ngram_size=3, max_penalty=-1.0)
        return torch.tensor(f(completions=rows(b), completion_ids=rows(b)))

    return [
        Pair("trl", "soft overlong punishment", overlong, trl_overlong, kind="value"),
        Pair("trl", "repetition penalty", repeated, trl_repeated, kind="value"),
    ]


def _deviations(dapo: dict[str, Any]) -> list[Pair]:
    weighed = {"trust_region": "clip_weight", "clip_low": 1.0}
    return [
        Pair(
            "trl",
            "loss_type=cispo, epsilon 0.2 as documented default",
            _clip(**weighed, clip_high=0.2),
            trl_loss(loss_type="cispo", epsilon_high=0.2),
            deviation="TRL's epsilon_high is the absolute cap, not 1 + epsilon: its 0.2 cuts "
            "every gradient to a fifth. The paper's eq. 5 clips at 1 + epsilon.",
        ),
        Pair(
            "trl",
            "vllm correction token_truncate with clip_min",
            _clip(clip_high=0.28, correction="truncate_token", correction_high=1.4),
            trl_loss(correction="token_truncate", **dapo),
            deviation="TRL also raises weights below clip_min; truncated importance sampling "
            "bounds weights from above only.",
        ),
        Pair(
            "trl",
            "entropy bonus with loss_type=grpo",
            _clip(reduction="sequence_mean", entropy="bonus", entropy_coef=0.01),
            trl_loss(_entropy_bonus_enabled=True, entropy_coef=0.01),
            deviation="TRL averages the bonus over tokens whatever the reduction; ours weighs it "
            "like the policy loss, as the objective's one sum says.",
        ),
    ]
