"""Say which computation a run will do, in words. Loads without torch."""

from __future__ import annotations

import dataclasses
from typing import Any

from verigrad.algorithms import presets
from verigrad.algorithms.needs import WHY, needs
from verigrad.algorithms.preset import Preset
from verigrad.objective import Objective

SECTIONS: dict[str, tuple[str, ...]] = {
    "learns from": ("data", "wrong_reward", "group_filter", "filter_rounds", "pass_low",
                    "pass_high", "retire_pass_rate"),
    "advantage": ("baseline", "scale", "std", "std_eps", "batch_unit", "parts", "part_weights",
                  "pass_at_k", "k"),
    "trust region": ("ratio", "denominator", "trust_region", "clip_low", "clip_high", "dual_clip",
                     "gate_positive", "gate_negative", "gamma_positive", "gamma_negative",
                     "cov_frac", "cov_low", "cov_high"),
    "correction": ("correction", "correction_low", "correction_high", "negative_mask"),
    "reduction": ("reduction", "constant_length"),
    "pull": ("kl", "kl_coef", "reference", "reference_every", "reference_mix", "drift",
             "drift_coef"),
    "entropy": ("entropy", "entropy_coef", "entropy_target", "entropy_step", "entropy_coef_max",
                "entropy_quantile"),
    "shaping": ("mask_truncated", "overlong_cache_frac", "overlong_penalty", "length_reward",
                "length_coef", "repetition_penalty", "repetition_ngram"),
    "critic": ("gamma", "lam", "lam_critic", "lam_alpha", "value_clip", "value_coef",
               "positive_nll"),
    "pairs": ("preference_beta", "preference_length_normalized", "preference_nll"),
}  # fmt: skip
"""Every axis but the name, in the order they are shown."""

_BASELINE = {
    "group_mean": "r - mean(r in group)",
    "leave_one_out": "r - mean(r of the others in group)",
    "batch_mean": "r - mean(r in batch)",
    "length_weighted": "r - sum(|y| r)/sum|y| in group",
    "greedy": "r - r(greedy completion)",
    "critic": "GAE from a critic",
    "none": "r",
}
_SCALE = {
    "group_std": " / std(r in group)",
    "batch_std": " / std(r in batch)",
    "centered_batch_std": " / std(r - baseline in batch)",
    "group_mean": " / mean(r in group)",
    "none": "",
}
_RATIO = {
    "token": "rho = pi/pi_{d} per token",
    "sequence": "rho = (pi(y)/pi_{d}(y))^(1/|y|)",
    "sequence_token": "rho = sg[(pi(y)/pi_{d}(y))^(1/|y|)] pi/sg[pi]",
    "product": "rho = pi(y)/pi_{d}(y)",
}
_REDUCTION = {
    "sequence_mean": "1/n sum_i 1/|y_i| sum_t",
    "token_mean": "1/sum|y| sum_i sum_t",
    "constant": "1/n sum_i 1/L sum_t",
    "prompt_mean": "mean over prompts of 1/sum|y| sum_i sum_t",
    "sequence_sum": "1/n sum_i sum_t",
}


def region(o: Objective) -> str:
    """The policy term per token, as it will be computed."""
    low, high = f"{1 - o.clip_low:g}", f"{1 + o.clip_high:g}"
    clipped = f"min(rho A, clip(rho, {low}, {high}) A)"
    if o.dual_clip is not None and o.trust_region in ("clip", "clip_cov"):
        clipped += f", at least {o.dual_clip:g} A where A < 0"
    cap = f"min(rho, {o.dual_clip:g})" if o.dual_clip is not None else "rho"
    return {
        "clip": clipped,
        "clip_weight": f"sg[clip(rho, {low}, {high})] A log pi",
        "clip_log": f"min(A log rho, A log clip(rho, {low}, {high}))",
        "soft_gate": f"A 4/tau sigmoid(tau (rho - 1)), tau {o.gate_positive:g} / "
        f"{o.gate_negative:g}",
        "gamma_weight": "sg[rho^k exp(lambda (1 - rho))] A log pi, (k, lambda) "
        f"{o.gamma_positive} / {o.gamma_negative}",
        "geometric_clip": f"A exp(mean_t onesided_clip(log rho, -{o.clip_low:g}, {o.clip_high:g}))",
        "mask_tv": f"sg[{cap}] A log pi, 0 once |pi - pi_old| > {o.clip_low:g} / {o.clip_high:g}",
        "mask_kl": f"sg[{cap}] A log pi, 0 once KL(old, pi) > {o.clip_low:g} / {o.clip_high:g}",
        "taper_negative": "A log pi (A > 0), sg[min(rho, 1)] A log pi (A < 0)",
        "clip_cov": f"{clipped}; {o.cov_frac:g} of tokens with covariance in ({o.cov_low:g}, "
        f"{o.cov_high:g}) get none",
        "kl_cov": f"rho A - {o.drift_coef:g} |log rho| on the {o.cov_frac:g} of highest covariance",
        "score": "A log pi",
        "none": "rho A",
    }[o.trust_region]


def equation(o: Objective) -> str:
    """What is maximised, in one line."""
    if o.data == "demonstrations":
        return f"J = {_REDUCTION[o.reduction]} log pi"
    if o.data in ("pairs", "online_pairs"):
        side = "1/|y| log pi/ref(y)" if o.preference_length_normalized else "log pi/ref(y)"
        return f"J = log sigmoid({o.preference_beta:g} (chosen - rejected)), each side {side}"
    terms = region(o)
    if o.correction != "none":
        terms = f"w [{terms}]"
    if o.kl not in ("none", "k1_in_reward") and o.kl_coef:
        name = "rho k3" if o.kl == "unbiased_k3" else o.kl
        terms += f" - {o.kl_coef:g} {name}(pi, ref)"
    if o.drift != "none" and o.drift_coef:
        terms += f" - {o.drift_coef:g} {o.drift}(pi, old)"
    if o.entropy != "none":
        terms += " + c H"
    return f"J = {_REDUCTION[o.reduction]} {{ {terms} }}"


def advantage(o: Objective) -> str:
    """How a reward becomes an advantage, in one line."""
    if o.pass_at_k == "best_minus_second":
        return "A = max r - second r for the best completion, 0 for the others"
    if o.pass_at_k == "analytic":
        return f"A = gain of pass@{o.k} by this completion / its deviation"
    if o.parts == "normalize_each":
        return f"A = sum of each part's (r - mean)/std in group{_SCALE[o.scale]}"
    kl = f" - {o.kl_coef:g} k1(pi, ref)" if o.kl == "k1_in_reward" and o.kl_coef else ""
    base = _BASELINE[o.baseline]
    body = f"({base}){_SCALE[o.scale]}" if _SCALE[o.scale] and " - " in base else base
    return f"A = {body}{_SCALE[o.scale] if body == base else ''}" + (f", r := r{kl}" if kl else "")


def header(objective: Objective) -> str:
    """The computation a run will do, in a few lines: name, equation, advantage, ratio, the rest."""
    o = objective
    lines = [f"objective  {o.name}{_changes(o)}", f"  {equation(o)}"]
    if o.data == "rollouts":
        lines += [f"  {advantage(o)}", f"  {_RATIO[o.ratio].format(d=o.denominator)}"]
    extra = [text for wanted, text in _extras(o) if wanted]
    if extra:
        lines.append("  " + "; ".join(extra))
    return "\n".join(lines)


def _changes(o: Objective) -> str:
    """What a recipe changed in the preset it names: ", with clip_high 0.4", or nothing."""
    if o.name not in presets.PRESETS:
        return ""
    axes = differing_axes(o, presets.PRESETS[o.name].objective)
    return ", with " + ", ".join(f"{n} {_text(getattr(o, n))}" for n in axes) if axes else ""


def _extras(o: Objective) -> list[tuple[bool, str]]:
    band = f"pass rate {o.pass_low:g} to {o.pass_high:g}"
    return [
        (o.group_filter != "none", f"silent groups: {o.group_filter}"),
        (o.group_filter != "none" and (o.pass_low > 0 or o.pass_high < 1), band),
        (
            o.correction != "none",
            f"w = {o.correction}({o.correction_low:g}, {o.correction_high:g})",
        ),
        (o.negative_mask is not None, f"stale negatives masked above {o.negative_mask}"),
        (o.reference != "frozen", f"reference {o.reference} every {o.reference_every} updates"),
        (o.entropy_quantile < 1, f"top {o.entropy_quantile:g} of tokens by entropy"),
        (o.mask_truncated, "truncated completions masked"),
        (o.overlong_cache_frac > 0, f"overlong penalty in the last {o.overlong_cache_frac:g}"),
        (o.length_reward != "none", f"length reward {o.length_reward} x {o.length_coef:g}"),
        (o.repetition_penalty > 0, f"repetition penalty {o.repetition_penalty:g}"),
        (o.wrong_reward != 0, f"wrong = {o.wrong_reward:g}"),
    ]


def show(objective: Objective) -> list[str]:
    """Lines that explain an objective: equation, every axis, the failure it patches, its neighbour.

    An objective that is no preset is explained as the nearest one plus the axes that differ.
    """
    lines = header(objective).splitlines()
    preset, differing = closest(objective)
    if differing:
        lines += ["", f"nearest preset: {preset.name}, which differs in {', '.join(differing)}"]
    lines += ["", *_about(preset)]
    lines += [f"  needs     {need}: {WHY[need]}" for need in sorted(needs(objective))] + [""]
    for section, axes in SECTIONS.items():
        lines.append(f"[{section}]")
        for name in axes:
            mark = "*" if name in differing else "?" if name in preset.unsure else " "
            doc = _docs()[name]
            lines.append(f" {mark}{name:<29}{_text(getattr(objective, name)):<16}{doc}")
    if preset.unsure:
        lines += ["", "? the paper does not state this value, or it is quoted second-hand"]
    return lines


def _about(preset: Preset) -> list[str]:
    lines = [
        f"{preset.name}: {preset.title}",
        f"  source    {preset.source}",
        f"  equation  {preset.equation}",
        f"  patches   {preset.patches}",
        f"  for       {preset.evidence_for}",
        f"  against   {preset.evidence_against}",
        f"  like      {preset.like}: "
        f"{'; '.join(diff(presets.get(preset.like).objective, preset.objective)[1:])}",
    ]
    if preset.numbers:
        numbers = ", ".join(f"{k} {v}" for k, v in preset.numbers.items())
        lines.append(f"  numbers   {numbers}")
    return lines


def closest(objective: Objective) -> tuple[Preset, list[str]]:
    """The preset with the fewest differing axes (the named one on a tie), and those axes."""

    def distance(preset: Preset) -> tuple[int, bool]:
        return len(differing_axes(objective, preset.objective)), preset.name != objective.name

    best = min(presets.PRESETS.values(), key=distance)
    return best, differing_axes(objective, best.objective)


def differing_axes(a: Objective, b: Objective) -> list[str]:
    """Names of the axes on which two objectives differ."""
    names = [f.name for f in dataclasses.fields(Objective) if f.name != "name"]
    return [n for n in names if getattr(a, n) != getattr(b, n)]


def diff(a: Objective, b: Objective) -> list[str]:
    """The axes on which two objectives differ, one line each, after a line that names both."""
    axes = differing_axes(a, b)
    lines = [f"{a.name} -> {b.name}: {len(axes)} axes differ" if axes else f"{a.name} = {b.name}"]
    return lines + [f"{n} {_text(getattr(a, n))} -> {_text(getattr(b, n))}" for n in axes]


def list_presets() -> list[str]:
    """One line per preset: its name, its title, the failure it patches."""
    width = max(map(len, presets.names()))
    return [f"{p.name:<{width}}  {p.title}. Patches: {p.patches}" for p in presets.PRESETS.values()]


def _docs() -> dict[str, str]:
    return {f.name: f.metadata["doc"] for f in dataclasses.fields(Objective)}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
