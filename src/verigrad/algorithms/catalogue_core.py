"""Presets: the small-project choice, GRPO and the papers that patch it one axis at a time."""

from __future__ import annotations

from verigrad.algorithms.preset import Preset, grpo_like
from verigrad.objective import Objective

_CLIP = "min(rho A, clip(rho, 1-lo, 1+hi) A)"

PRESETS: tuple[Preset, ...] = (
    Preset(
        objective=Objective(name="small"),
        title="Defensible defaults for a small project",
        source="judgement over the papers below",
        equation=f"1/sum|y| sum_i sum_t {_CLIP}, A = r - mean(r), dual clip 3",
        patches="nothing left to tune before the verifier is trusted",
        like="dr_grpo",
        evidence_for="r - mean and token mean as in OLMo 3, clip 0.2/0.28 as in DAPO and GLM-5, "
        "dual clip 3 as in verl",
        numbers={"updates per rollout": "1", "group size": "8", "lr": "1e-6 full, 1e-5 below 1B"},
    ),
    Preset(
        objective=grpo_like("grpo", kl="k3", kl_coef=0.04),
        title="GRPO (DeepSeekMath)",
        source="arXiv 2402.03300 eq. 3 and 4",
        equation=f"1/G sum_i 1/|y_i| sum_t [{_CLIP} - beta k3], A = (r - mean r)/std r",
        patches="PPO's critic: half the trained state",
        like="ppo",
        evidence_for="DeepSeekMath-7B GSM8K 82.9 to 88.2, MATH 46.8 to 51.7",
        evidence_against="length bias (1/|y|), difficulty bias (1/std), entropy collapse, and "
        "k3's gradient is the forward KL",
        numbers={
            "lr": "1e-6",
            "prompts x G": "16 x 64",
            "updates per rollout": "1",
            "tokens": "1024",
        },
        unsure=("clip_low", "clip_high"),
    ),
    Preset(
        objective=grpo_like(
            "r1_zero",
            kl="k3",
            kl_coef=0.001,
            reference="reset",
            reference_every=400,
            clip_low=10.0,
            clip_high=10.0,
        ),
        title="DeepSeek-R1-Zero",
        source="arXiv 2501.12948, Nature s41586-025-09422-z",
        equation=f"GRPO with beta = 0.001, eps = 10, reference := policy every 400 steps; {_CLIP}",
        patches="a reference that holds a long run back",
        like="grpo",
        evidence_for="AIME24 15.6 to 77.9 pass@1 from a base model",
        evidence_against="most later recipes drop the KL altogether",
        numbers={"lr": "3e-6", "prompts x G": "32 x 16", "updates per rollout": "16", "T": "1"},
        unsure=("clip_low", "clip_high"),
    ),
    Preset(
        objective=grpo_like("dr_grpo", scale="none", reduction="constant"),
        title="Dr. GRPO",
        source="arXiv 2503.20783",
        equation=f"1/G sum_i 1/L sum_t {_CLIP}, A = r - mean(r), L constant",
        patches="length growth of wrong answers (1/|y|) and difficulty bias (1/std)",
        like="grpo",
        evidence_for="wrong answers stop growing at equal accuracy; 43.3 AIME24 from "
        "Qwen2.5-Math-7B",
        evidence_against="DeepSeek-V3.2, GLM-5 and MAI keep the std; at G = 8 the bias is at "
        "most 2.6x",
        numbers={"G": "8", "tokens": "3000"},
        unsure=("clip_low", "clip_high"),
    ),
    Preset(
        objective=grpo_like(
            "dapo",
            reduction="token_mean",
            clip_high=0.28,
            group_filter="resample",
            mask_truncated=True,
            overlong_cache_frac=0.2,
            wrong_reward=-1.0,
        ),
        title="DAPO",
        source="arXiv 2503.14476 eq. 8 and 13",
        equation=f"1/sum|y| sum_i sum_t {_CLIP} with 0 < correct < G, A = (r - mean r)/std r",
        patches="entropy collapse (clip-higher), silent groups, long answers under-weighted, "
        "truncation noise",
        like="grpo",
        evidence_for="Qwen2.5-32B AIME24: 30, +filter 36, +clip-higher 38, +soft penalty 41, "
        "+token mean 42, +dynamic sampling 50",
        evidence_against="the best reproduction did not mask truncated answers; OLMo 3.1 and "
        "Skywork-OR1 train on them",
        numbers={
            "lr": "1e-6",
            "prompts x G": "512 x 16",
            "updates per rollout": "16",
            "tokens": "20480, last 4096 penalised",
        },
    ),
    Preset(
        objective=grpo_like("gspo", ratio="sequence", clip_low=3e-4, clip_high=4e-4),
        title="GSPO",
        source="arXiv 2507.18071 eq. 5 to 7",
        equation="1/G sum_i min(s A, clip(s, 1-lo, 1+hi) A), s = (pi(y)/pi_old(y))^(1/|y|)",
        patches="token ratios that jump when experts are routed differently",
        like="grpo",
        evidence_for="trains a 30B mixture of experts without routing replay",
        evidence_against="keeps the 1/|y| bias (LUSPO); no effect on-policy",
        numbers={"updates per rollout": "4"},
    ),
    Preset(
        objective=grpo_like("gspo_token", ratio="sequence_token", clip_low=3e-4, clip_high=4e-4),
        title="GSPO-token",
        source="arXiv 2507.18071 eq. 13 and 14",
        equation="as gspo with s_t = sg[s] pi_t/sg[pi_t]",
        patches="one advantage per completion where turns deserve different ones",
        like="gspo",
        evidence_for="equals gspo in value and gradient where A is uniform",
        numbers={"updates per rollout": "4"},
    ),
    Preset(
        objective=grpo_like(
            "cispo",
            trust_region="clip_weight",
            reduction="token_mean",
            clip_low=1.0,
            clip_high=4.0,
            group_filter="resample",
        ),
        title="CISPO (MiniMax-M1)",
        source="arXiv 2506.13585 eq. 4",
        equation="1/sum|y| sum sg(clip(rho, 0, 1+hi)) A log pi",
        patches="rare fork tokens (However, Wait) that the clip silences after the first update",
        like="dapo",
        evidence_for="DAPO's accuracy in half the steps; ScaleRL: 4 to 8 is insensitive",
        evidence_against="collapses in DPPO's mismatch tests",
        numbers={"updates per rollout": "16", "head": "FP32"},
        unsure=("clip_high",),
    ),
    Preset(
        objective=grpo_like("sapo", trust_region="soft_gate"),
        title="SAPO",
        source="arXiv 2511.20347",
        equation="1/G sum_i 1/|y_i| sum_t A (4/tau) sigmoid(tau (rho - 1)), tau 1.0 (A > 0), "
        "1.05 (A < 0)",
        patches="the hard edge of a clip",
        like="grpo",
        evidence_for="used for Qwen3-VL (second-hand)",
    ),
    Preset(
        objective=grpo_like("gmpo", trust_region="geometric_clip", clip_low=0.4, clip_high=0.4),
        title="GMPO",
        source="arXiv 2507.20673",
        equation="1/G sum_i A exp(1/|y| sum_t onesided_clip(log rho, -0.4, 0.4))",
        patches="outlier ratios in an arithmetic mean",
        like="gspo",
        evidence_for="+4.1 % maths over GRPO at 7B (from memory)",
        evidence_against="verl's version multiplies the gradient by the number of micro-batches",
    ),
    Preset(
        objective=grpo_like("gdpo", parts="normalize_each", scale="batch_std"),
        title="GDPO",
        source="arXiv 2601.05242",
        equation="A = batch_normalise(sum_n w_n (r_n - mean r_n)/std r_n)",
        patches="several rewards whose sum hides the hard one",
        like="grpo",
        evidence_for="up to +6.3 % AIME; no collapse near step 400 with a format reward",
        unsure=("reduction",),
    ),
    Preset(
        objective=grpo_like("lite_ppo", scale="batch_std", reduction="token_mean"),
        title="Lite PPO",
        source="arXiv 2508.08221",
        equation=f"1/sum|y| sum_i sum_t {_CLIP}, A = (r - mean r)/std over the batch",
        patches="std of a small group",
        like="dr_grpo",
        evidence_for="Qwen3-4B/8B: beats GRPO and DAPO with two choices",
        evidence_against="drop the std where rewards are concentrated",
        numbers={"batch": "1024", "G": "8", "tokens": "8192"},
    ),
    Preset(
        objective=grpo_like(
            "luspo", ratio="sequence", reduction="sequence_sum", clip_low=2e-3, clip_high=2.5e-3
        ),
        title="LUSPO",
        source="arXiv 2602.05261",
        equation="1/G sum_i |y_i| min(s A, clip(s, 1-lo, 1+hi) A)",
        patches="GSPO's length bias",
        like="gspo",
        evidence_for="keeps length where GSPO shrinks it",
    ),
    Preset(
        objective=grpo_like(
            "vespo", trust_region="gamma_weight", ratio="product", reduction="token_mean"
        ),
        title="VESPO",
        source="arXiv 2602.10693",
        equation="1/sum|y| sum sg(W^k exp(lambda (1-W))) A log pi, W = pi(y)/pi_old(y)",
        patches="variance of whole-completion ratios when stale",
        like="gspo",
        evidence_for="stable far off-policy (paper)",
    ),
)
