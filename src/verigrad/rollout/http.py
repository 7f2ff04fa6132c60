"""An engine behind an OpenAI-compatible completions endpoint, such as ``vllm serve``."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from torch import Tensor

from verigrad.errors import TrainingError, UsageError
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

Publish = Callable[[Mapping[str, Tensor], int], None]

_BUSY = (429, 502, 503, 504)


class HTTPEngine:
    """Samples from ``POST {base_url}/completions``; implements ``verigrad.types.Engine``.

    ``base_url`` ends in ``/v1``; ``model`` is the name that the server gives its model. The server
    must return token ids, which vLLM does on ``return_token_ids``. ``logprobs`` says what it was
    started to report: "raw" (vLLM's default) or "processed". ``publish`` is called by ``load`` to
    bring the weights to the server; without it the weights can't change, and ``load`` says so.
    ``max_rows`` requests run side by side; each waits at most ``timeout_s`` seconds.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        tokenizer: Any,
        logprobs: LogprobsMode = "raw",
        api_key: str | None = None,
        publish: Publish | None = None,
        max_rows: int = 64,
        timeout_s: float = 600.0,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise UsageError(f"base_url = {base_url!r} must begin with http:// or https://.")
        self.version = 0
        self._url = base_url.rstrip("/") + "/completions"
        self._model = model
        self._mode: LogprobsMode = logprobs
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._publish, self._max_rows, self._timeout_s = publish, max_rows, timeout_s
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
        """Sample ``group_size`` completions per prompt, one request each, with a seed of its own.

        UsageError for what the server can't promise (see ``foreign.check_promises``) or does not
        return; TrainingError when it can't be reached or fails.
        """
        check_request(prompts, sampling, group_size=group_size, context=None, vocab_size=None)
        check_promises(sampling, self._mode, engine="http")
        keys = prompt_keys(prompts)
        done: list[dict[int, Completion]] = [{} for _ in prompts]
        groups: dict[int, Group] = {}
        with ThreadPoolExecutor(self._max_rows) as pool:
            jobs = {
                pool.submit(self._sample, p, sampling, completion_seed(seed, keys[i], n)): (i, n)
                for i, p in enumerate(prompts)
                for n in range(group_size)
            }
            try:
                for job in as_completed(jobs):
                    i, n = jobs[job]
                    done[i][n] = job.result()
                    if len(done[i]) == group_size:
                        members = tuple(done[i][k] for k in range(group_size))
                        groups[i] = Group(prompts[i], members)
                        if on_group is not None:
                            on_group(groups[i])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [groups[i] for i in range(len(prompts))]

    def load(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Bring the weights to the server through ``publish``; UsageError without one."""
        if self._publish is None:
            raise UsageError(
                "This server's weights can't be changed: a completions endpoint takes no weights. "
                "Pass publish=... (a function that brings them to the server), or train with "
                "rollout.engine = 'native' or 'vllm'."
            )
        self._publish(weights, version)
        self.version = version

    def _sample(self, prompt: Prompt, sampling: Sampling, seed: int) -> Completion:
        version = self.version
        answer = self._post(
            {
                "model": self._model,
                "prompt": list(prompt.token_ids),
                "max_tokens": sampling.max_new_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k,
                "min_p": sampling.min_p,
                "stop": list(sampling.stop),
                "seed": seed,
                "n": 1,
                "logprobs": 1,
                "return_token_ids": True,
            }
        )
        ids, logprobs, finished = self._read(answer)
        return completion_of(
            prompt,
            ids,
            logprobs,
            sampling=sampling,
            reader=self._reader,
            ends=self._ends,
            finished=finished,
            version=version,
        )

    def _read(self, answer: dict[str, Any]) -> tuple[list[int], list[float], str | None]:
        choice = (answer.get("choices") or [{}])[0]
        ids = choice.get("token_ids")
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
        for name, value, remedy in (
            ("token ids", ids, "vLLM 0.10.2 or newer returns them on return_token_ids"),
            ("log-probabilities", logprobs, "it must honour logprobs = 1"),
        ):
            if value is None:
                raise UsageError(
                    f"{self._url} returned no {name}, without which completions can't be trained "
                    f"on: {remedy}. Use such a server, or rollout.engine = 'native'."
                )
        assert ids is not None and logprobs is not None
        return ids, logprobs, choice.get("finish_reason")

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        """The server's answer; a busy or unreachable one is asked four times in seven seconds."""
        data = json.dumps(body).encode()
        for wait_s in (1, 2, 4, 0):
            request = urllib.request.Request(self._url, data, self._headers)
            try:
                with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                    return json.load(response)
            except urllib.error.HTTPError as e:
                detail = e.read(2000).decode(errors="replace")
                if e.code in _BUSY and wait_s:
                    time.sleep(wait_s)
                    continue
                raise TrainingError(f"{self._url} answered {e.code} {e.reason}: {detail}") from e
            except (urllib.error.URLError, OSError) as e:
                if wait_s:
                    time.sleep(wait_s)
                    continue
                raise TrainingError(
                    f"{self._url} can't be reached: {e}. Is the server running, and is base_url "
                    f"right (it ends in /v1)?"
                ) from e
            except json.JSONDecodeError as e:
                raise TrainingError(f"{self._url} answered something that is no JSON: {e}") from e
        raise AssertionError("the last try returns or raises")
