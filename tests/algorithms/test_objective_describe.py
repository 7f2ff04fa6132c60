"""What a run prints about its objective is what it computes."""

from __future__ import annotations

import dataclasses

import pytest

from verigrad.algorithms import describe, presets
from verigrad.objective import Objective


def test_the_sections_hold_every_axis_once() -> None:
    shown = [axis for axes in describe.SECTIONS.values() for axis in axes]
    assert sorted(shown) == sorted(
        f.name for f in dataclasses.fields(Objective) if f.name != "name"
    )


def test_every_axis_has_a_sentence() -> None:
    for f in dataclasses.fields(Objective):
        assert f.metadata["doc"].endswith("."), f.name


def test_header_of_dapo() -> None:
    assert describe.header(presets.resolve("dapo", {})).splitlines() == [
        "objective  dapo",
        "  J = 1/sum|y| sum_i sum_t { min(rho A, clip(rho, 0.8, 1.28) A) }",
        "  A = (r - mean(r in group)) / std(r in group)",
        "  rho = pi/pi_old per token",
        "  silent groups: resample; truncated completions masked; overlong penalty in the last "
        "0.2; "
        "wrong = -1",
    ]


def test_header_says_what_a_recipe_changed() -> None:
    o = presets.resolve("dapo", {"clip_high": 0.4, "dual_clip": 3.0})
    first = describe.header(o).splitlines()[0]
    assert first == "objective  dapo, with clip_high 0.4, dual_clip 3"
    assert describe.header(Objective()).splitlines()[0] == "objective  custom"


def test_show_says_what_a_run_must_supply() -> None:
    text = "\n".join(describe.show(presets.resolve("ppo", {})))
    assert "needs     critic: baseline = 'critic' needs values" in text
    assert "needs" not in "\n".join(describe.show(presets.resolve("raft", {})))[:600]


def test_header_names_kl_correction_and_sampler() -> None:
    v32 = describe.header(presets.resolve("deepseek_v32", {}))
    assert "0.001 rho k3(pi, ref)" in v32 and "stale negatives masked above 0.5" in v32
    assert "w = mask_token(0.5, 2)" in describe.header(presets.resolve("glm5", {}))
    assert "pi(y)/pi_sampler(y)" in describe.header(presets.resolve("topr", {}))
    assert "r := r - 0.03 k1(pi, ref)" in describe.header(presets.resolve("rloo", {}))
    assert "log sigmoid(5 (chosen - rejected)), each side 1/|y|" in describe.header(
        presets.resolve("dpo_length_normalized", {})
    )


@pytest.mark.parametrize("name", presets.names())
def test_show_explains_every_preset(name: str) -> None:
    text = "\n".join(describe.show(presets.resolve(name, {})))
    p = presets.get(name)
    assert p.source in text and p.patches in text and "nearest preset" not in text
    assert "{o." not in text
    for axis in p.unsure:
        assert f"?{axis} " in text


def test_show_marks_what_differs_from_the_nearest_preset() -> None:
    lines = describe.show(presets.resolve("dapo", {"clip_high": 0.3}))
    assert "nearest preset: dapo, which differs in clip_high" in lines
    assert any(line.startswith(" *clip_high") for line in lines)


def test_the_nearest_preset_of_a_custom_objective() -> None:
    custom = dataclasses.replace(presets.resolve("gspo", {}), name="custom")
    assert describe.closest(custom)[0].name == "gspo"


def test_diff() -> None:
    a, b = presets.resolve("grpo", {}), presets.resolve("gspo", {})
    assert describe.diff(a, b) == [
        "grpo -> gspo: 5 axes differ",
        "ratio token -> sequence",
        "clip_low 0.2 -> 0.0003",
        "clip_high 0.2 -> 0.0004",
        "kl k3 -> none",
        "kl_coef 0.04 -> 0",
    ]
    assert describe.diff(a, a) == ["grpo = grpo"]


def test_list_has_one_line_per_preset() -> None:
    lines = describe.list_presets()
    assert [line.split()[0] for line in lines] == list(presets.names())
