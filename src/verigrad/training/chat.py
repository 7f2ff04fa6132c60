"""Talk to a trained model, token by token."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from verigrad.config import ModelSection, read_recipe
from verigrad.errors import RunDirectoryError
from verigrad.training.checkpoint import find_checkpoint
from verigrad.training.load import load_model
from verigrad.types import Message


class Chat:
    """A loaded model that answers chat turns; the recipe's system turn and worked examples come
    first."""

    def __init__(self, model: Any, tokenizer: Any, opening: Sequence[Message]) -> None:
        self._model, self._tokenizer, self._opening = model, tokenizer, tuple(opening)

    def reply(
        self, messages: Sequence[Message], *, max_new_tokens: int = 256, temperature: float = 0.0
    ) -> Iterator[str]:
        """Yield the reply piece by piece. ``temperature`` 0 takes the likeliest token."""
        from transformers import GenerationConfig, TextIteratorStreamer

        opening = self._opening
        if any(m.role == "system" for m in messages):
            opening = tuple(m for m in opening if m.role != "system")
        system = [m for m in messages if m.role == "system"]
        turns = [*system, *opening, *(m for m in messages if m.role != "system")]
        ids = self._encode(turns)
        streamer = TextIteratorStreamer(self._tokenizer, skip_prompt=True, skip_special_tokens=True)
        sampled = {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0}
        settings = GenerationConfig(
            max_new_tokens=max_new_tokens,
            eos_token_id=self._tokenizer.eos_token_id,
            pad_token_id=self._tokenizer.pad_token_id,
            **(sampled if temperature > 0 else {"do_sample": False}),
        )
        failed: list[BaseException] = []

        def work() -> None:
            try:
                with torch.inference_mode():
                    self._model.generate(
                        ids,
                        attention_mask=torch.ones_like(ids),
                        generation_config=settings,
                        streamer=streamer,
                    )
            except BaseException as e:  # handed to the reader's thread below, where it is raised
                failed.append(e)
                streamer.end()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield from streamer
        thread.join()
        if failed:
            raise failed[0]

    def _encode(self, turns: Sequence[Message]) -> torch.Tensor:
        from verigrad.problems.render import apply_template, encode, has_template, plain_text

        if has_template(self._tokenizer):
            ids = encode(
                apply_template(turns, self._tokenizer, where="chat", generation=True),
                self._tokenizer,
                special=False,
            )
        else:
            ids = encode(plain_text(turns), self._tokenizer, special=True)
        return torch.tensor([ids])


def chat_engine(path: str | Path) -> Chat:
    """The newest whole checkpoint of a run, or a model folder, ready to talk.

    A run's system turn and worked examples open the conversation, since the model was trained
    behind them. Raises RunDirectoryError where there is nothing to talk to.
    """
    path = Path(path)
    folder: Path | None = path
    recipe_file = path / "recipe.toml"
    if recipe_file.exists():
        folder, torn = find_checkpoint(path)
        if folder is None:
            raise RunDirectoryError(
                f"run {path} has no whole checkpoint to talk to. {' '.join(torn)}".strip()
            )
    elif not (path / "config.json").exists():
        raise RunDirectoryError(
            f"{path} is neither a run (recipe.toml) nor a model folder (config.json)."
        )
    else:
        recipe_file = path.parent.parent / "recipe.toml"
    opening: list[Message] = []
    if recipe_file.exists():
        problems = read_recipe(recipe_file).problems
        if problems.system_prompt:
            opening.append(Message("system", problems.system_prompt))
        for turn in problems.few_shot:
            opening.append(Message("user", problems.answer_format.format(question=turn.question)))
            opening.append(Message("assistant", turn.answer))
    model, tokenizer = load_model(ModelSection(path=str(folder)), seed=0)
    return Chat(model, tokenizer, opening)
