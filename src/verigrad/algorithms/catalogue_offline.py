"""Presets: the neighbours that learn from demonstrations, kept rollouts or pairs (SFT, RAFT,
DPO)."""

from __future__ import annotations

from verigrad.algorithms.preset import Preset, grpo_like

_LIKELIHOOD = {"baseline": "none", "scale": "none", "trust_region": "score"}

PRESETS: tuple[Preset, ...] = (
    Preset(
        objective=grpo_like("sft", data="demonstrations", reduction="token_mean", **_LIKELIHOOD),
        title="Supervised fine-tuning",
        source="gradient coefficient 1 on given answers (2402.03300, table 10)",
        equation="-1/sum|y| sum log pi(y)",
        patches="a model that never succeeds: RL has nothing to reinforce",
        like="raft",
        evidence_for="distilling a stronger model beats RL on a small one (R1: 72.6 against 47.0)",
        evidence_against="terse human answers cost a modern model 15 points on GSM8K",
    ),
    Preset(
        objective=grpo_like("raft", reduction="token_mean", **_LIKELIHOOD),
        title="RAFT: rejection-sampling fine-tuning",
        source="arXiv 2304.06767; 2504.11343",
        equation="-1/sum|y| sum r log pi(y), r in {0, 1}",
        patches="nothing but the need for a baseline: correct completions are demonstrations",
        like="rgra",
        evidence_for="within a small margin of GRPO, faster early (2504.11343)",
        evidence_against="entropy falls; without negatives it stops earlier",
    ),
    Preset(
        objective=grpo_like("dpo", data="pairs", reduction="sequence_mean", **_LIKELIHOOD),
        title="DPO",
        source="arXiv 2305.18290 eq. 7",
        equation="-log sigmoid(beta (log pi/ref(chosen) - log pi/ref(rejected)))",
        patches="the reward model and the rollouts",
        like="dpo_length_normalized",
        evidence_for="OLMo 3: SFT 70.1 to 72.7 before RL",
        evidence_against="offline pairs are far behind online ones on verifiable tasks "
        "(2506.21495)",
        numbers={"beta": "0.1"},
    ),
    Preset(
        objective=grpo_like(
            "dpo_length_normalized",
            data="pairs",
            preference_length_normalized=True,
            preference_beta=5.0,
            **_LIKELIHOOD,
        ),
        title="Length-normalised DPO (Tulu 3, OLMo 3)",
        source="arXiv 2512.13961; 2411.15124",
        equation="-log sigmoid(beta (1/|c| log pi/ref(c) - 1/|r| log pi/ref(r)))",
        patches="longer answers preferred for their length",
        like="dpo",
        evidence_for="delta learning: 72.9 where SFT on the chosen falls to 64.5",
        numbers={"beta": "5", "lr": "8e-8 (7B)", "batch": "128"},
    ),
    Preset(
        objective=grpo_like("dpo_online", data="online_pairs", **_LIKELIHOOD),
        title="Online DPO",
        source="arXiv 2402.04792; 2506.21495",
        equation="DPO's loss on a correct and a wrong completion of the same group",
        patches="pairs that the policy would never write",
        like="dpo",
        evidence_for="online and semi-online DPO match GRPO on verifiable tasks",
        numbers={"beta": "0.1"},
    ),
)
