"""The packed path against its slow twin: values, every gradient, and what it refuses."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from update_models import FAMILIES, V, make, rows, scores_and_gradients, with_lora, worst_gap

from verigrad.errors import UsageError
from verigrad.training.forward import (
    completion_logprobs,
    packing_fault,
    plan_micro_batches,
    round_masters_once,
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("common", [0, 11])
def test_packed_equals_plain(family: str, common: int) -> None:
    model = make(family)
    assert packing_fault(model) is None
    batch = rows(3, common=common)
    plain, plain_grads = scores_and_gradients(model, batch, method="plain", temperature=0.7)
    packed, grads = scores_and_gradients(model, batch, method="packed", temperature=0.7)
    assert (plain.method, packed.method) == ("plain", "packed")
    torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
    torch.testing.assert_close(packed.entropy_BT, plain.entropy_BT, atol=1e-5, rtol=0)
    assert not packed.entropy_BT.requires_grad
    assert worst_gap(plain_grads, grads) < 1e-5


@pytest.mark.parametrize("family", ["llama", "tied", "qwen2"])
def test_packed_equals_plain_with_lora(family: str) -> None:
    model = with_lora(make(family))
    batch = rows(8, common=10)
    plain, plain_grads = scores_and_gradients(model, batch, method="plain")
    packed, grads = scores_and_gradients(model, batch, method="packed")
    assert packed.method == "packed"
    assert all("lora_" in name for name in grads)
    torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
    assert worst_gap(plain_grads, grads) < 1e-5


@pytest.mark.parametrize("family", ["llama", "gemma2", "lora"])
def test_recomputed_layers_give_the_same(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    from verigrad.training import memory

    model = with_lora(make("llama")) if family == "lora" else make(family)
    batch = rows(5, common=10)
    want, want_grads = scores_and_gradients(model, batch)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1)
    got, grads = scores_and_gradients(model, batch)
    torch.testing.assert_close(got.logprobs_BT, want.logprobs_BT, atol=1e-6, rtol=0)
    assert worst_gap(want_grads, grads) < 1e-6
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize("family", ["llama", "qwen2", "mistral_window"])
def test_the_models_own_modules_give_the_same(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    from verigrad.training import backbone

    batch = rows(5, common=10)
    model = make(family)
    want, want_grads = scores_and_gradients(model, batch)
    monkeypatch.setattr(backbone, "is_llama_like", lambda _: False)
    got, grads = scores_and_gradients(model, batch)
    torch.testing.assert_close(got.logprobs_BT, want.logprobs_BT, atol=1e-5, rtol=0)
    assert worst_gap(want_grads, grads) < 1e-5


def test_scoring_in_inference_mode_leaves_training_possible() -> None:
    model = make("tied")
    batch = rows(4, common=10)
    with torch.inference_mode():
        completion_logprobs(model, *batch[:2], group_index=batch[2], precision="bf16")
        completion_logprobs(model, *batch[:2], group_index=batch[2])
    _, grads = scores_and_gradients(model, batch, precision="bf16")
    assert grads


@pytest.mark.parametrize("write", ["in place", "through .data", "by AdamW"])
def test_bf16_copies_follow_the_masters(write: str) -> None:
    model = make("llama")
    prompts, completions, index = rows(3)
    how = {"group_index": index, "precision": "bf16"}
    before = completion_logprobs(model, prompts, completions, **how).logprobs_BT
    if write == "in place":
        with torch.no_grad():
            model.model.layers[1].mlp.up_proj.weight.mul_(1.2)
    elif write == "through .data":
        model.model.layers[1].mlp.up_proj.weight.data.mul_(1.2)
    else:
        before.sum().backward()
        torch.optim.AdamW(model.parameters(), lr=0.01, fused=True).step()
    after = completion_logprobs(model, prompts, completions, **how).logprobs_BT.detach()
    fresh = make("llama")
    fresh.load_state_dict(model.state_dict())
    want = completion_logprobs(fresh, prompts, completions, **how).logprobs_BT.detach()
    assert (after - before).abs().max() > 0.01
    assert torch.equal(after, want)


def test_long_prompts_and_many_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    from verigrad.training import attention, head

    monkeypatch.setattr(attention, "TILE_SCORES", 300)
    monkeypatch.setattr(attention, "QUERY_BLOCK", 7)
    monkeypatch.setattr(head, "TILE_LOGITS", 20 * V)
    for family in ("qwen2", "gemma2", "mistral_window"):
        model = make(family)
        batch = rows(4, common=20, longest=30, prompt=40)
        plain, plain_grads = scores_and_gradients(model, batch, method="plain")
        packed, grads = scores_and_gradients(model, batch, method="packed")
        torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
        assert worst_gap(plain_grads, grads) < 1e-5


def test_scores_are_zero_beyond_a_row_and_a_log_softmax_within() -> None:
    model = make("llama")
    prompts, completions = [[5, 6], [5, 6]], [[7, 8, 0], [0]]
    scores = completion_logprobs(model, prompts, completions, group_index=[0, 0], temperature=2.0)
    assert scores.logprobs_BT.shape == (2, 3)
    assert scores.logprobs_BT[1, 1:].tolist() == [0.0, 0.0]
    with torch.no_grad():
        logits = model(torch.tensor([[5, 6, 7, 8]])).logits[0]
    by_hand = torch.log_softmax(logits / 2.0, -1)
    expected = [by_hand[1, 7], by_hand[2, 8], by_hand[3, 0]]
    torch.testing.assert_close(scores.logprobs_BT[0], torch.stack(expected), atol=1e-5, rtol=0)
    # Token 0 is the padding id of this model: masks come from lengths, so it is scored like any.
    assert scores.logprobs_BT[1, 0].item() == pytest.approx(by_hand[1, 0].item(), abs=1e-5)


def test_a_sharp_entropy_is_that_of_its_distribution() -> None:
    model = make("llama")
    with torch.no_grad():
        model.lm_head.weight.zero_()
    scores = completion_logprobs(model, [[1, 2]], [[3, 4]], group_index=[0])
    assert scores.entropy_BT[0].tolist() == pytest.approx([math.log(V)] * 2, abs=1e-5)
    assert scores.logprobs_BT[0].tolist() == pytest.approx([-math.log(V)] * 2, abs=1e-5)


def test_splitting_into_micro_batches_changes_nothing() -> None:
    model = make("tied")
    prompts, completions, index = batch = rows(6, common=9)
    whole, want = scores_and_gradients(model, batch)
    torch.manual_seed(5)
    weights = torch.randn(len(prompts), 64)
    plan = plan_micro_batches(
        [len(p) for p in prompts], [len(c) for c in completions], index, max_tokens=40
    )
    assert len(plan) > 2
    total: dict[str, torch.Tensor] = {}
    for part in plan:
        piece = (
            [prompts[i] for i in part],
            [completions[i] for i in part],
            [index[i] for i in part],
        )
        scores, grads = scores_and_gradients(model, piece, weights[part])
        T = scores.logprobs_BT.shape[1]
        torch.testing.assert_close(
            scores.logprobs_BT, whole.logprobs_BT[part][:, :T], atol=1e-5, rtol=0
        )
        for name, g in grads.items():
            total[name] = total.get(name, 0) + g
    assert worst_gap(want, total) < 1e-5


def test_more_padding_changes_nothing() -> None:
    model = make("qwen3")
    prompts, completions, index = rows(7)
    alone = completion_logprobs(model, prompts, completions, group_index=index, method="plain")
    longer = [*completions, [3] * 40]
    for method in ("plain", "packed"):
        scores = completion_logprobs(
            model, [*prompts, prompts[0]], longer, group_index=[*index, 0], method=method
        )
        T = alone.logprobs_BT.shape[1]
        assert scores.logprobs_BT.shape[1] == 40
        torch.testing.assert_close(
            scores.logprobs_BT[:-1, :T], alone.logprobs_BT, atol=1e-5, rtol=0
        )
        assert not scores.logprobs_BT[:-1, T:].any()


def test_row_order_and_group_names_change_nothing() -> None:
    model = make("llama")
    prompts, completions, index = rows(9)
    want = completion_logprobs(model, prompts, completions, group_index=index).logprobs_BT
    order = torch.randperm(len(prompts), generator=torch.Generator().manual_seed(1)).tolist()
    got = completion_logprobs(
        model, [prompts[i] for i in order], [completions[i] for i in order],
        group_index=[index[i] + 70 for i in order],
    ).logprobs_BT  # fmt: skip
    torch.testing.assert_close(got, want[order], atol=1e-5, rtol=0)


def test_rows_of_one_group_may_have_different_prompts() -> None:
    model = make("llama")
    batch = ([[4, 5, 6], [4, 5], [9]], [[1, 2], [3], [8, 8, 8]], [0, 0, 0])
    plain, plain_grads = scores_and_gradients(model, batch, method="plain")
    packed, grads = scores_and_gradients(model, batch, method="packed")
    torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
    assert worst_gap(plain_grads, grads) < 1e-5


def test_a_prompt_that_is_the_common_beginning_itself() -> None:
    model = make("llama")
    head = list(range(20, 32))
    batch = ([head, head, [*head, 50]], [[1, 2], [3, 4, 5], [6]], [0, 0, 1])
    plain, plain_grads = scores_and_gradients(model, batch, method="plain")
    packed, grads = scores_and_gradients(model, batch, method="packed")
    torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
    assert worst_gap(plain_grads, grads) < 1e-5


def test_rows_without_a_token_give_zeros_and_let_backward_run() -> None:
    model = make("llama")
    scores = completion_logprobs(model, [[1], [2]], [[], []], group_index=[0, 1])
    assert scores.logprobs_BT.shape == (2, 0)
    scores.logprobs_BT.sum().backward()


@pytest.mark.parametrize("family", ["llama", "tied", "qwen3"])
def test_bf16_is_near_and_keeps_float32_masters(family: str) -> None:
    model = make(family)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(0.3)
    batch = rows(3, common=11)
    exact, want = scores_and_gradients(model, batch)
    close, grads = scores_and_gradients(model, batch, precision="bf16")
    assert close.logprobs_BT.dtype is torch.float32
    assert all(g.dtype is torch.float32 for g in grads.values())
    assert all(p.dtype is torch.float32 for p in model.parameters())
    gap = (close.logprobs_BT - exact.logprobs_BT).abs()
    assert 0 < gap.mean() < 0.02
    assert worst_gap(want, grads) < 0.15


def test_a_model_that_cannot_be_packed_says_why() -> None:
    model = make("llama")
    model.lm_head = torch.nn.Sequential(model.lm_head)
    with pytest.warns(UserWarning, match="output projection of LlamaForCausalLM is a Sequential"):
        scores = completion_logprobs(model, [[1, 2]], [[3]], group_index=[0])
    assert scores.method == "plain"
    assert scores.fallback is not None and "Sequential" in scores.fallback
    want = completion_logprobs(model, [[1, 2]], [[3]], group_index=[0], method="plain")
    assert torch.equal(scores.logprobs_BT, want.logprobs_BT)


def test_lora_modules_of_every_kind_are_followed() -> None:
    """Switched off, merged, with dropout or DoRA: always what the model itself would compute."""
    from peft import LoraConfig, get_peft_model

    batch = rows(2, common=10)

    def gap(model: torch.nn.Module) -> float:
        prompts, completions, index = batch
        with torch.no_grad():
            both = [
                completion_logprobs(
                    model, prompts, completions, group_index=index, method=m
                ).logprobs_BT
                for m in ("plain", "packed")
            ]
        return float((both[0] - both[1]).abs().max())

    model = with_lora(make("llama"), dropout=0.5)
    on = completion_logprobs(model, *batch[:2], group_index=batch[2]).logprobs_BT.detach()
    assert gap(model) < 1e-5
    with model.disable_adapter():
        off = completion_logprobs(model, *batch[:2], group_index=batch[2]).logprobs_BT.detach()
        assert gap(model) < 1e-5
    assert (on - off).abs().max() > 0.01
    model.merge_adapter()
    assert gap(model) < 1e-5
    dora = get_peft_model(
        make("llama"), LoraConfig(r=2, target_modules=["q_proj", "up_proj"], use_dora=True)
    )
    assert gap(dora.eval()) < 1e-5


def test_attention_dropout_rules_packing_out_in_training_mode_only() -> None:
    model = make("llama")
    model.config.attention_dropout = 0.1
    assert packing_fault(model) is None
    assert "attention_dropout = 0.1" in (packing_fault(model.train()) or "")


def test_other_architectures_pack_through_their_own_modules() -> None:
    model = make("gpt2")
    assert packing_fault(model) is None
    batch = rows(2, common=10)
    plain, plain_grads = scores_and_gradients(model, batch, method="plain")
    packed, grads = scores_and_gradients(model, batch)
    assert packed.method == "packed"
    torch.testing.assert_close(packed.logprobs_BT, plain.logprobs_BT, atol=1e-5, rtol=0)
    assert worst_gap(plain_grads, grads) < 1e-5


def test_packing_leaves_the_model_as_it_was() -> None:
    model = make("llama")
    before = model.config._attn_implementation
    ids = torch.tensor([[3, 4, 5]])
    with torch.no_grad():
        want = model(ids).logits
        completion_logprobs(model, [[1, 2]], [[3]], group_index=[0])
        assert torch.equal(model(ids).logits, want)
    assert model.config._attn_implementation == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        completion_logprobs(model, [[1, 2]], [[3]], group_index=[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"precision": "fp16"}, "precision = 'fp16'"),
        ({"method": "fast"}, "method = 'fast'"),
        ({"group_index": [0, 0]}, "1 prompts, 1 completions and 2 group indices"),
    ],
)
def test_bad_arguments_are_named(change: dict, message: str) -> None:
    how = {"group_index": [0], **change}
    with pytest.raises(UsageError, match=message):
        completion_logprobs(make("llama"), [[1]], [[2]], **how)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="prompt of row 1 is empty"):
        completion_logprobs(make("llama"), [[1], []], [[2], [3]], group_index=[0, 1])


def test_masters_are_rounded_once() -> None:
    model = make("llama")
    share = round_masters_once(model)
    assert share > 0.9
    assert all(torch.equal(p, p.bfloat16().float()) for p in model.parameters())
    assert round_masters_once(model) == 0.0


def test_a_rounding_tie_no_longer_flips_with_the_smallest_step() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    tie = 1.0 + 2**-8  # halfway between 1 and the next bfloat16, 1 + 2**-7
    with torch.no_grad():
        model.weight.fill_(tie)
    up = torch.tensor(tie * (1 + 1e-6)).bfloat16()
    assert up.item() == 1.0078125  # without rounding, a step of 1e-6 moves bf16 by a whole unit
    assert round_masters_once(model) == 1.0
    assert model.weight.item() == 1.0
    assert torch.tensor(model.weight.item() * (1 + 1e-6)).bfloat16().item() == 1.0
