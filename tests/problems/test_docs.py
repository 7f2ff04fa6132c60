"""docs/problems.md: its Python runs, and the numbers it names are those of the code."""

import re
from pathlib import Path

from verigrad.problems.words import KINDS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "problems.md").read_text(encoding="utf-8")


def test_the_python_of_the_guide_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "docs/problems.md", "exec"), {})
    assert "54 training problems, 20 held out" in capsys.readouterr().out


def test_the_guide_names_every_kind():
    assert f"`{' '.join(KINDS)}`" in TEXT
