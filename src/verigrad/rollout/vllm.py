"""vLLM in this process, as an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, util
from typing import Any, Literal

from torch import Tensor

from verigrad.errors import MissingExtraError
from verigrad.rollout.endings import TextReader, end_token_ids
from verigrad.rollout.foreign import (
    LogprobsMode,
    check_promises,
    completion_of,
    completion_seed,
)
from verigrad.rollout.request import check_request
from verigrad.rollout.schedule import prompt_keys
from verigrad.types import Completion, Group, Prompt, Sampling

_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


class VLLMEngine:
    """Samples with ``vllm.LLM``; implements ``verigrad.types.Engine``.

    ``path`` is a Hugging Face checkpoint folder or hub id. ``logprobs`` chooses what vLLM reports:
    "processed" follows the temperature but forbids top-p, top-k and min-p; "raw" the other way
    round. ``memory_frac`` is the share of a GPU's memory that vLLM may take.
    """

    def __init__(
        self,
        path: str,
        tokenizer: Any,
        *,
        precision: Literal["fp32", "bf16"],
        max_rows: int = 64,
        context: int | None = None,
        memory_frac: float = 0.5,
        logprobs: LogprobsMode = "processed",
    ) -> None:
        if util.find_spec("vllm") is None:
            raise MissingExtraError("vllm", "vllm", "rollout.engine = 'vllm'")
        # In one process the weights of ``load`` are handed over instead of pickled.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        self._vllm = import_module("vllm")
        self.version = 0
        self._mode: LogprobsMode = logprobs
        self._context = context
        self._llm = self._vllm.LLM(
            model=path,
            dtype=_DTYPES[precision],
            max_num_seqs=max_rows,
            max_model_len=context,
            gpu_memory_utilization=memory_frac,
            logprobs_mode=f"{logprobs}_logprobs",
            generation_config="vllm",
            enable_prefix_caching=True,
            disable_log_stats=True,
        )
        self._ends = end_token_ids(tokenizer, None)
        self._reader = TextReader(tokenizer, self._ends)

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        *,
        group_size: int,
        seed: int,
        on_group: Callable[[Group], None] | None = None,
    ) -> list[Group]:
        """Sample ``group_size`` completions per prompt; ``on_group`` hears the groups at the end.

        UsageError for what vLLM can't promise (see ``foreign.check_promises``).
        """
        check_request(
            prompts, sampling, group_size=group_size, context=self._context, vocab_size=None
        )
        check_promises(sampling, self._mode, engine="vllm")
        if not prompts:
            return []
        keys = prompt_keys(prompts)
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(p.token_ids)} for p in prompts for _ in range(group_size)],
            [
                self._params(sampling, completion_seed(seed, key, n))
                for key in keys
                for n in range(group_size)
            ],
            use_tqdm=False,
        )
        groups = []
        for i, prompt in enumerate(prompts):
            mine = outputs[i * group_size : (i + 1) * group_size]
            members = tuple(self._completion(prompt, out.outputs[0], sampling) for out in mine)
            groups.append(Group(prompt, members))
            if on_group is not None:
                on_group(groups[-1])
        return groups

    def load(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Copy the policy's weights into vLLM's model and forget cached prefixes."""
        pairs = [(name, tensor.detach()) for name, tensor in weights.items()]
        self._llm.apply_model(lambda model: model.load_weights(iter(pairs)))
        self._llm.reset_prefix_cache()
        self.version = version

    def _params(self, sampling: Sampling, seed: int) -> Any:
        return self._vllm.SamplingParams(
            max_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            stop=list(sampling.stop),
            stop_token_ids=sorted(self._ends),
            seed=seed,
            logprobs=0,
        )

    def _completion(self, prompt: Prompt, out: Any, sampling: Sampling) -> Completion:
        ids = list(out.token_ids)
        return completion_of(
            prompt,
            ids,
            [at[i].logprob for at, i in zip(out.logprobs, ids, strict=True)],
            sampling=sampling,
            reader=self._reader,
            ends=self._ends,
            finished=out.finish_reason,
            version=self.version,
        )
