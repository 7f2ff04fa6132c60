"""Presets: what published systems really set (OLMo 3, ScaleRL, JustRL, V3.2, GLM-5, Kimi, ...)."""

from __future__ import annotations

from typing import Any

from verigrad.algorithms.preset import Preset, grpo_like

_OLMO: dict[str, Any] = {
    "scale": "none",
    "reduction": "token_mean",
    "clip_high": 0.272,
    "group_filter": "refill",
}
_OLMO_EQUATION = "1/sum|y| sum min(old/mu, cap) min(rho A, clip(rho, 0.8, 1.272) A), A = r - mean r"

PRESETS: tuple[Preset, ...] = (
    Preset(
        objective=grpo_like("olmo_rl_7b_think", **_OLMO),
        title="OlmoRL, OLMo 3 7B Think",
        source="arXiv 2512.13961 section 4.4, table 49",
        equation=_OLMO_EQUATION + ", no cap",
        patches="every DAPO and Dr. GRPO failure at once, with active refill instead of "
        "oversampling",
        like="dapo",
        evidence_for="SFT 70.1, +DPO 72.7, +RLVR 74.1",
        evidence_against="overlong filtering: no consistent improvement",
        numbers={
            "lr": "1e-6",
            "prompts x G": "64 x 8",
            "tokens": "32768",
            "updates per rollout": "1",
        },
    ),
    Preset(
        objective=grpo_like(
            "olmo_rl_32b_think", correction="truncate_token", correction_high=2.0, **_OLMO
        ),
        title="OlmoRL, OLMo 3 32B Think",
        source="arXiv 2512.13961 table 49",
        equation=_OLMO_EQUATION + ", cap 2",
        patches="as olmo_rl_7b_think, and sampler-trainer mismatch",
        like="olmo_rl_7b_think",
        evidence_for="OLMo 3.1: 21 more days gave +4 AIME, +20 IFBench",
        numbers={
            "lr": "2e-6",
            "prompts x G": "128 x 8",
            "tokens": "32768",
            "asynchrony": "8 steps",
        },
    ),
    Preset(
        objective=grpo_like("olmo_rl_instruct", **_OLMO),
        title="OlmoRL, OLMo 3 7B Instruct",
        source="arXiv 2512.13961 table 49",
        equation=_OLMO_EQUATION + ", no cap",
        patches="as olmo_rl_7b_think; four updates per rollout make the clip act",
        like="olmo_rl_7b_think",
        evidence_for="table 49",
        numbers={
            "lr": "1e-6",
            "prompts x G": "64 x 8",
            "tokens": "8192",
            "updates per rollout": "4",
        },
    ),
    Preset(
        objective=grpo_like(
            "olmo_rl_zero", correction="truncate_token", correction_high=2.0, **_OLMO
        ),
        title="OlmoRL-Zero, OLMo 3 7B",
        source="arXiv 2512.13961 table 49",
        equation=_OLMO_EQUATION + ", cap 2",
        patches="as olmo_rl_32b_think, from the base model",
        like="olmo_rl_32b_think",
        evidence_for="pass@32 rises too; a random reward gains nothing",
        numbers={"lr": "1e-6", "prompts x G": "32 x 8", "tokens": "16384"},
    ),
    Preset(
        objective=grpo_like(
            "scale_rl",
            trust_region="clip_weight",
            clip_low=1.0,
            clip_high=4.0,
            scale="centered_batch_std",
            reduction="prompt_mean",
            group_filter="drop_silent",
            retire_pass_rate=0.9,
        ),
        title="ScaleRL",
        source="arXiv 2510.13786",
        equation="mean over prompts of 1/sum|y| sum sg(min(rho, 5)) A log pi, A = (r - mean "
        "r)/batch std",
        patches="a ceiling: loss type, FP32 head, batch size and context move it; the rest only "
        "speed",
        like="cispo",
        evidence_for="a 100k GPU-hour run predicted from its start; ceiling 0.52 to 0.61 by the "
        "FP32 head",
        numbers={"G": "16", "interruption": "10k to 12k thinking + 2k answer", "asynchrony": "8"},
    ),
    Preset(
        objective=grpo_like("just_rl", reduction="token_mean", clip_high=0.28),
        title="JustRL",
        source="arXiv 2512.16649",
        equation="1/sum|y| sum min(rho A, clip(rho, 0.8, 1.28) A), A = (r - mean r)/std r",
        patches="patches: no KL, entropy, length, filter or stage",
        like="dapo",
        evidence_for="R1-Distill-1.5B AIME24 28 to 58 over 4,000 steps",
        evidence_against="a length penalty or a lenient verifier lowered its plateau",
        numbers={"tokens": "16384"},
        unsure=("reduction",),
    ),
    Preset(
        objective=grpo_like(
            "prorl",
            reduction="token_mean",
            clip_high=0.4,
            group_filter="resample",
            kl="k3",
            kl_coef=1e-4,
            reference="reset",
            reference_every=400,
        ),
        title="ProRL",
        source="arXiv 2505.24864",
        equation="DAPO's loss with clip 0.2/0.4 - beta k3, reference and optimiser reset on "
        "stagnation",
        patches="entropy collapse over thousands of steps",
        like="dapo",
        evidence_for="R1-Distill-1.5B: +14.7 maths, +13.9 code, +54.8 logic puzzles",
        numbers={"T": "1.2", "steps": "2000", "tokens": "8k to 16k"},
        unsure=("kl_coef", "reference_every"),
    ),
    Preset(
        objective=grpo_like(
            "magistral",
            scale="centered_batch_std",
            reduction="prompt_mean",
            clip_high=0.28,
            group_filter="drop_silent",
            overlong_cache_frac=0.2,
            overlong_penalty=0.1,
        ),
        title="Magistral",
        source="arXiv 2506.10910",
        equation="1/sum|y| in the group sum min(rho A, clip(rho) A), A = (r - mean r) over the "
        "mini-batch's std",
        patches="entropy collapse by clip-higher 0.26 to 0.28; an entropy bonus was unstable",
        like="dapo",
        evidence_for="Mistral Medium 3 AIME24 26 to 74 by RL alone",
        evidence_against="how advantages are normalised made little difference",
        unsure=("overlong_cache_frac", "overlong_penalty"),
    ),
    Preset(
        objective=grpo_like(
            "skywork_or1",
            reduction="token_mean",
            group_filter="drop_silent",
            entropy="adaptive",
            entropy_target=0.2,
            entropy_step=0.005,
        ),
        title="Skywork-OR1 (MAGIC)",
        source="arXiv 2505.22312",
        equation="1/sum|y| sum min(rho A, clip(rho) A) + alpha H, alpha controlled to a target "
        "entropy",
        patches="premature entropy collapse; truncated answers are trained on",
        like="dapo",
        evidence_for="32B 57.8 to 72.8, 7B 43.6 to 57.5 (AIME24/25 and LCB)",
        evidence_against="the target must be tuned (0.2 to 5 nats in print)",
        unsure=("clip_low", "clip_high"),
    ),
    Preset(
        objective=grpo_like("deepseek_v32", kl="unbiased_k3", kl_coef=0.001, negative_mask=0.5),
        title="DeepSeek-V3.2",
        source="arXiv 2512.02556 eq. 7 to 9",
        equation="1/G sum 1/|y| sum M min(rho A, clip(rho) A) - beta rho k3, M = 0 for stale "
        "negatives",
        patches="k3's biased gradient; stale completions with negative advantage",
        like="grpo",
        evidence_for="post-training at over a tenth of pre-training's compute",
        evidence_against="needs routing and sampling masks replayed too",
        unsure=("clip_low", "clip_high", "kl_coef", "negative_mask"),
    ),
    Preset(
        objective=grpo_like(
            "glm5", clip_high=0.28, correction="mask_token", correction_low=0.5, correction_high=2.0
        ),
        title="GLM-5",
        source="arXiv 2602.15763",
        equation="1/G sum 1/|y| sum pop(w; 1/2, 2) min(rho A, clip(rho, 0.8, 1.28) A)",
        patches="sampler-trainer mismatch",
        like="icepop",
        evidence_for="on-policy, no KL",
        numbers={"prompts x G": "32 x 32"},
    ),
    Preset(
        objective=grpo_like(
            "intellect2", reduction="token_mean", dual_clip=4.0, kl="k3", kl_coef=0.001
        ),
        title="INTELLECT-2",
        source="arXiv 2505.07291",
        equation="1/sum|y| sum min(min(rho, 4) A, clip(rho, 0.8, 1.2) A) - beta k3",
        patches="gradient spikes from ratios without bound where A < 0",
        like="grpo",
        evidence_for="asynchronous training over the internet stayed stable",
        numbers={"lr": "3e-7", "G": "16"},
    ),
    Preset(
        objective=grpo_like(
            "kimi_k15",
            scale="none",
            trust_region="score",
            reduction="sequence_sum",
            drift="sequence_k2",
            drift_coef=0.1,
            length_reward="min_max",
            length_coef=1.0,
        ),
        title="Kimi k1.5",
        source="arXiv 2501.12599 eq. 3",
        equation="1/k sum_j (r_j - mean r) log pi(y_j) - tau/2 (log pi(y_j)/pi_i(y_j))^2",
        patches="the value network; answers that grow without need",
        like="dr_grpo",
        evidence_for="AIME24 77.5, MATH-500 96.2",
        evidence_against="the length reward must be warmed up without",
        unsure=("drift_coef", "length_coef"),
    ),
    Preset(
        objective=grpo_like(
            "mai_thinking",
            reduction="token_mean",
            clip_low=0.6,
            clip_high=1.5,
            dual_clip=50.0,
            group_filter="refill",
            pass_low=0.1,
            pass_high=0.8,
            length_reward="pass_rate",
            length_coef=0.25,
        ),
        title="MAI-Thinking-1",
        source="MAI-Thinking-1 report, 2026",
        equation="1/sum|y| sum min(min(rho, 50) A, clip(rho, 1-e, 1/(1-e) + k) A), e = 0.6, k "
        "adaptive in [0, 2.5]",
        patches="entropy, by moving the upper clip; gradient spikes, by the outer clip",
        like="dapo",
        evidence_for="an entropy bonus did worse than this controller",
        evidence_against="diverged in a few steps without replaying the sampler's top-p mask",
        numbers={"lr": "1e-6", "G": "128", "updates per rollout": "5", "tokens": "8k to 128k"},
    ),
)
