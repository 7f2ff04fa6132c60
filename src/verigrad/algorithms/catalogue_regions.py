"""Presets: other trust regions and entropy (DPPO, Clip-Cov, KL-Cov, 80/20, IcePop, ...)."""

from __future__ import annotations

from verigrad.algorithms.preset import Preset, grpo_like

PRESETS: tuple[Preset, ...] = (
    Preset(
        objective=grpo_like(
            "dppo",
            trust_region="mask_tv",
            scale="none",
            reduction="token_mean",
            clip_low=0.2,
            clip_high=0.2,
            dual_clip=20.0,
        ),
        title="DPPO (binary total variation)",
        source="arXiv 2602.04879",
        equation="sg(min(rho, 20)) A log pi, 0 once |pi - pi_old| > delta in the direction of A",
        patches="a ratio clip that over-holds rare tokens and under-holds frequent ones",
        like="dr_grpo",
        evidence_for="stable on a mixture of experts without router replay",
        numbers={"delta": "0.2 (prime-rl), 0.15 (verl's example)"},
        unsure=("clip_low", "clip_high", "reduction"),
    ),
    Preset(
        objective=grpo_like(
            "dppo_kl",
            trust_region="mask_kl",
            scale="none",
            reduction="token_mean",
            clip_low=0.05,
            clip_high=0.05,
            dual_clip=20.0,
        ),
        title="DPPO (binary KL)",
        source="arXiv 2602.04879",
        equation="as dppo with the binary KL(old || pi) of the sampled token",
        patches="as dppo",
        like="dppo",
        evidence_for="as dppo",
        unsure=("clip_low", "clip_high", "reduction"),
    ),
    Preset(
        objective=grpo_like(
            "prime_rl",
            trust_region="mask_tv",
            scale="none",
            reduction="token_mean",
            clip_low=0.2,
            clip_high=0.2,
            drift="k2",
            drift_coef=2e-3,
            denominator="sampler",
        ),
        title="prime-rl's default (INTELLECT-3's trainer)",
        source="prime-rl 559b4477; arXiv 2512.16144",
        equation="dppo against the sampler + 1e-3 log^2 rho, A = r - mean r",
        patches="sampler-trainer mismatch, without recomputing old log-probabilities",
        like="dppo",
        evidence_for="INTELLECT-3: AIME24 90.8",
        numbers={"staleness": "up to 8 (from memory)"},
    ),
    Preset(
        objective=grpo_like(
            "clip_cov",
            trust_region="clip_cov",
            reduction="token_mean",
            clip_low=0.2,
            clip_high=0.2,
            scale="group_std",
        ),
        title="Clip-Cov",
        source="arXiv 2505.22617",
        equation="the clip, and no gradient for 2e-4 of the tokens with covariance in (1, 5)",
        patches="entropy collapse: R = -a exp(H) + b",
        like="dapo",
        evidence_for="entropy stays higher than with clip-higher",
        evidence_against="few tokens: chosen per micro-batch in verl, so the gradient depends on "
        "it",
        unsure=("clip_low", "clip_high"),
    ),
    Preset(
        objective=grpo_like(
            "kl_cov", trust_region="kl_cov", reduction="token_mean", drift_coef=1.0
        ),
        title="KL-Cov",
        source="arXiv 2505.22617",
        equation="rho A - |log rho| on the 2e-4 of the tokens with the highest covariance",
        patches="entropy collapse",
        like="clip_cov",
        evidence_for="as clip_cov, steadier",
        numbers={"share": "2e-3 (7B), 2e-4 (32B) in the paper, from memory"},
        unsure=("cov_frac",),
    ),
    Preset(
        objective=grpo_like(
            "top_entropy",
            reduction="token_mean",
            clip_high=0.28,
            group_filter="resample",
            entropy_quantile=0.2,
            wrong_reward=-1.0,
            overlong_cache_frac=0.2,
        ),
        title="80/20: high-entropy tokens only",
        source="arXiv 2506.01939",
        equation="DAPO's loss on the fifth of the tokens with the highest entropy",
        patches="gradient spent on tokens that were certain anyway",
        like="dapo",
        evidence_for="equal or better than all tokens from 8B up (paper)",
    ),
    Preset(
        objective=grpo_like(
            "icepop", correction="mask_token", correction_low=0.5, correction_high=5.0
        ),
        title="IcePop (Ring-1T)",
        source="arXiv 2510.18855",
        equation="pop(w) min(rho A, clip(rho) A), pop(w) = w in [0.5, 5] else 0",
        patches="tokens on which sampler and trainer disagree (mixture of experts)",
        like="grpo",
        evidence_for="1T mixture of experts trained; GLM-5 uses (1/2, 2)",
        evidence_against="masks fewer tokens as the gap widens (KPop)",
        unsure=("reduction",),
    ),
    Preset(
        objective=grpo_like(
            "seq_mis", correction="mask_sequence", correction_low=0.5, correction_high=2.0
        ),
        title="Sequence masked importance sampling",
        source="Liu, Li et al. 2025, When Speed Kills Stability",
        equation="w(y) min(rho A, clip(rho) A), w(y) = prod old/mu in [0.5, 2] else 0",
        patches="sampler-trainer mismatch, exactly for the completions that stay",
        like="icepop",
        evidence_for="collapses later than token weights",
        evidence_against="the product grows with length: long completions leave first",
        unsure=("correction_low", "reduction"),
    ),
    Preset(
        objective=grpo_like(
            "tis",
            scale="none",
            reduction="token_mean",
            correction="truncate_token",
            correction_high=2.0,
        ),
        title="Truncated importance sampling",
        source="Yao et al. 2025; OLMo 3 2512.13961",
        equation="min(old/mu, 2) min(rho A, clip(rho) A)",
        patches="sampler-trainer mismatch",
        like="dr_grpo",
        evidence_for="OLMo 3 32B Think and RL-Zero",
        evidence_against="token weights are biased; insufficient alone on one mixture of experts "
        "(Miles)",
    ),
)
