"""docs/papers.md says what the catalogue computes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from verigrad.algorithms import papers, presets

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == papers.page(), "run: python -m verigrad.algorithms.papers > docs/papers.md"


@pytest.mark.parametrize("name", presets.names())
def test_every_function_named_for_a_preset_exists(name: str) -> None:
    text = papers.functions(presets.resolve(name, {}))
    found = re.findall(r"`(\w+)\.(\w+)", text)
    assert found
    for module, function in found:
        assert callable(getattr(importlib.import_module(f"verigrad.algorithms.{module}"), function))


def test_peers_are_named_for_presets_that_exist() -> None:
    assert set(papers.PEERS) <= set(presets.names())
