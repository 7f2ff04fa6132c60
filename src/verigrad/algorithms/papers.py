"""The page docs/papers.md, written from the catalogue so that it cannot drift. Loads without torch.

``python -m verigrad.algorithms.papers > docs/papers.md`` writes it; a test holds the file to this
text.
"""

from __future__ import annotations

from verigrad.algorithms import describe, presets
from verigrad.algorithms.preset import Preset
from verigrad.objective import Objective

PEERS: dict[str, str] = {
    "grpo": "TRL's default loss_type is dapo, its beta 0, and with beta above 0 it multiplies k3 "
    "by the ratio (use_bias_correction_kl). TRL adds 1e-4 to the standard deviation, verl 1e-6; "
    "both use the sample deviation, and so does this preset. verl gives a group of one its raw "
    "reward; here it is 0.",
    "dr_grpo": "verl divides by the longest response of the micro-batch unless loss_scale_factor "
    "is set; the divisor here is the token limit, whatever the padding.",
    "dapo": "TRL's loss_type dapo is the loss only: no dynamic sampling. verl's filter has no "
    "bound in its default trainer; here filter_rounds ends it. verl adds a dual clip of 3 to "
    "every clip.",
    "gspo": "verl computes GSPO-token under this name and aggregates by token mean unless told "
    "otherwise; TRL keeps epsilon 0.2 where the paper has 3e-4.",
    "gspo_token": "TRL removed it in 1.16.",
    "cispo": "TRL's epsilon_high is the absolute cap (5.0 is clip_high = 4 here) and its default "
    "of 0.2 scales every gradient by 0.2; verl's cap is 1 + clip_ratio_high with a floor.",
    "sapo": "verl ignores loss_agg_mode and always takes the sequence mean, as the paper does.",
    "gmpo": "verl averages per micro-batch, so its gradient grows with their number; TRL's "
    "experimental trainer ignores the KL coefficient's ratio correction.",
    "gdpo": "verl whitens over tokens (batch_unit = tokens here) and crashes in its default "
    "trainer; TRL whitens over completions, as the paper does.",
    "vespo": "TRL clamps the log of W at -18.4 and 20, this code at -20 and 20.",
    "rloo": "TRL's RLOO clips the product ratio at 0.2, which any long completion leaves after "
    "one off-policy step; verl pairs its rloo advantage with the clip of its actor.",
    "reinforce_plus_plus": "verl whitens over tokens as this preset does; with 1e-8 inside the "
    "root.",
    "reinforce_plus_plus_baseline": "verl whitens over tokens, which subtracts a token-weighted "
    "mean again and gives groups of equal rewards a non-zero advantage; ms-swift divides only, "
    "as here.",
    "remax": "crashes in verl 0.9.1's default trainer, which never computes the greedy reward.",
    "pass_at_k_best": "verl also divides by the group's deviation unless norm_adv_by_std_in_grpo "
    "is off.",
    "ppo": "verl and OpenRLHF whiten advantages over the batch (scale = batch_std here).",
    "dppo": "verl uses its dual clip of 3 as the cap although its own comment asks for 20.",
    "clip_cov": "verl draws tokens at random per micro-batch; here once per optimiser batch, by "
    "highest covariance unless the caller passes random numbers.",
    "kl_cov": "verl picks per micro-batch, so its gradient depends on how the batch is cut.",
    "top_entropy": "TRL takes the quantile per micro-batch; here it is the whole optimiser "
    "batch's.",
    "tis": "TRL's truncation also raises weights below clip_min; its default is sequence_mask at "
    "3.",
    "seq_mis": "TRL's default correction (sequence_mask, 3.0), without a lower bound.",
    "deepseek_v32": "TRL: off_policy_mask_threshold, and the ratio-corrected k3 is its default KL.",
    "skywork_or1": "TRL averages the entropy bonus over tokens whatever the reduction; here it "
    "is weighed like the policy loss.",
    "intellect2": "TRL's delta is the same computation as this dual clip.",
}
"""What TRL 1.16, verl 0.9.1 and others compute under a paper's name, where it is not the
paper's."""

_REGION = {
    "clip": "clip", "clip_weight": "clip_weight", "clip_log": "clip_log", "soft_gate": "soft_gate",
    "gamma_weight": "gamma_weight", "geometric_clip": "geometric_clip", "mask_tv": "mask_tv",
    "mask_kl": "mask_kl", "taper_negative": "taper_negative", "clip_cov": "clip",
    "kl_cov": "unbounded", "score": "score", "none": "unbounded",
}  # fmt: skip

_START = """\
# From paper to function to preset

<!-- Written by `python -m verigrad.algorithms.papers`; edit the catalogue, not this page. -->

An objective is one value on each axis. A preset is a published combination; it differs from its
neighbour exactly where the paper does. `verigrad objective show NAME` prints what a recipe resolves
to, `verigrad objective diff A B` compares two, and every run prints its own in its header.

Notation: y completion, |y| its trained tokens, r reward, A advantage, rho = pi/pi_old per token, s
its geometric mean over the completion, mu the sampler's policy, ref the reference, sg
stop-gradient, G group size, n completions in the optimiser batch. Every reduction runs over the
whole optimiser batch.

Each formula is tested against a slow twin, typed from the paper's sentence, and against TRL 1.16,
verl 0.9.1 and polgrad (`bench/objectives_vs_peers.py`: loss and gradient within 1e-5, or a
documented deviation).

## Axes and functions

| axis | function (`verigrad.algorithms`) | values |
|---|---|---|
"""

_AXES = (
    (
        "baseline, scale, parts, pass_at_k",
        "advantages.advantages",
        ("baseline", "scale", "pass_at_k"),
    ),
    ("advantages per token (critic, returns-to-go)", "returns.token_advantages", ()),
    ("ratio", "ratios.LEVELS", ("ratio",)),
    ("trust region", "trust.REGIONS", ("trust_region",)),
    ("correction", "corrections.correction_weights", ("correction",)),
    ("reduction", "reduce.token_weights", ("reduction",)),
    ("KL in the loss", "kl.loss_term", ("kl",)),
    ("KL in the reward", "kl.penalized_rewards, kl.token_rewards", ()),
    ("drift", "kl.drift_term", ("drift",)),
    ("entropy", "entropy.next_coef, entropy.top_entropy", ("entropy",)),
    ("shaping", "shaping.shaped_rewards", ("length_reward",)),
    ("groups", "filters.keep_rows, filters.more_groups", ("group_filter",)),
    ("tokens", "filters.selection", ()),
    ("critic", "critic.value_loss", ()),
    ("pairs", "offline.preference_loss, offline.pair_up", ("data",)),
)

_IDENTITIES = """\
## Identities and facts worth a test

- **GRPO without std is RLOO but for one factor.** r - mean(r) is (G-1)/G times r - mean of the
  others, so the directions are equal. The two real differences are the division by std and 1/|y|.
- **Dividing by std turns E[p] into E[2 arcsin sqrt p], by the mean into E[log p].** At G = 8 the
  factors on grad p at pass rates .5/.2/.05/.01 are 1 (RLOO), .875 (mean only),
  1.856/2.107/2.473/2.609 (population std) and 1.984/3.951/6.033/6.793 (mean).
- **The clip has two silent quadrants**, A > 0 with rho > 1+hi and A < 0 with rho < 1-lo. A < 0 with
  large rho keeps its full gradient; the dual clip (the same as INTELLECT-2's delta) bounds it.
- **On-policy, every ratio is 1**: clips, gates and sequence ratios do nothing, and a loss near 0 is
  normal.
- **KL as a loss** (categorical, exact): k1 has gradient 0; k2 and rho k3 that of the reverse KL; k3
  that of the forward KL. k1 in the reward gives the reverse KL.
- **A constant group is exactly 0** at any value and size: statistics are taken in float64, and
  rewards that differ by less than four float32 steps count as equal. (TRL 1.16 trains on the float
  noise of 86 of 200 two-decimal constants at G = 8.)
- **Without a critic the trained state halves**: 2053 MiB against 4105 MiB for a policy of 135M
  parameters, and so does the peak memory of one update, 0.51 of PPO's
  (`bench/critic_memory.py`). The reference and the sampler are not affected.

"""


_ABSENT = """\
## What peers have and this has not

- verl's token-sum aggregation: its gradient grows with the batch, so the learning rate would too.
- verl's optimal token baselines: they read the squared norm of every token's distribution.
- verl's k1+ and k3+: the value of one estimator with the gradient of k2; choose k2, or unbiased_k3.
- GPG's factor (completions over non-zero rewards): a learning rate that changes with every batch.
- TRL's lower bound on truncated importance weights: it raises weights, which adds bias and removes
  no variance.
- Batch-normalised importance weights (verl): they tie a completion's weight to its batch.
"""


def page() -> str:
    """The whole page, ending in a newline."""
    rows = [_axis_row(*axis) for axis in _AXES]
    unsure = [f"- `{p.name}`: {', '.join(p.unsure)}" for p in presets.PRESETS.values() if p.unsure]
    parts = [
        _START + "\n".join(rows) + "\n",
        _IDENTITIES.rstrip() + "\n",
        "## Presets\n",
        *[_entry(p) for p in presets.PRESETS.values()],
        _ABSENT,
        "## Values that no paper states\n",
        "The paper leaves these out, or they are quoted second-hand; treat them as ours.\n",
        "\n".join(unsure) + "\n",
    ]
    return "\n".join(parts)


def _axis_row(title: str, function: str, axes: tuple[str, ...]) -> str:
    from typing import get_args, get_type_hints

    hints = get_type_hints(Objective)
    values = "; ".join(", ".join(get_args(hints[a])) for a in axes)
    return f"| {title} | `{function}` | {values or '-'} |"


def _entry(p: Preset) -> str:
    o = p.objective
    lines = [
        f"### `{p.name}`: {p.title}\n",
        f"- source: {p.source}",
        f"- equation: `{p.equation}`",
        f"- computes: `{describe.equation(o)}`",
        *([f"- advantage: `{describe.advantage(o)}`"] if o.data == "rollouts" else []),
        f"- functions: {functions(o)}",
        f"- patches: {p.patches}",
        f"- evidence for: {p.evidence_for}",
        f"- evidence against: {p.evidence_against}",
        f"- {'; '.join(describe.diff(presets.get(p.like).objective, o))}",
    ]
    if p.numbers:
        lines.append(f"- numbers: {', '.join(f'{k} {v}' for k, v in p.numbers.items())}")
    if p.name in PEERS:
        lines.append(f"- peers: {PEERS[p.name]}")
    return "\n".join(lines) + "\n"


def functions(o: Objective) -> str:
    """The functions that compute an objective, in the order a step calls them."""
    if o.data == "demonstrations":
        return "`offline.likelihood_loss`, `reduce.token_weights`"
    if o.data == "pairs":
        return "`offline.preference_loss`"
    if o.data == "online_pairs":
        return "`offline.pair_up`, `offline.preference_loss`"
    per_token = o.baseline == "critic" or (o.baseline == "batch_mean" and o.kl == "k1_in_reward")
    names = ["kl.token_rewards", "returns.token_advantages"] if per_token else []
    if not per_token:
        names = ["advantages.advantages"]
        if o.kl == "k1_in_reward":
            names = ["kl.penalized_rewards", *names]
    names += [f"ratios.{o.ratio}_ratio", f"trust.{_REGION[o.trust_region]}"]
    if o.correction != "none":
        names.append("corrections.correction_weights")
    if o.negative_mask is not None:
        names.append("corrections.negative_mask")
    if o.entropy_quantile < 1 or o.trust_region in ("clip_cov", "kl_cov"):
        names.append("filters.selection")
    names.append(f"reduce.token_weights ({o.reduction})")
    if o.kl in ("k1", "k2", "k3", "unbiased_k3"):
        names.append(f"kl.loss_term ({o.kl})")
    if o.drift != "none":
        names.append(f"kl.drift_term ({o.drift})")
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(page(), end="")
