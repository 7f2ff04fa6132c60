import re
import tomllib
from pathlib import Path

from test_verifiers_registry import NEEDED

from verigrad.config import make_recipe
from verigrad.verifiers import list_verifiers, make_verifier
from verigrad.verifiers.foreign.spec import ForeignOptions
from verigrad.verifiers.instructions import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "verifiers.md").read_text(encoding="utf-8")


def test_the_page_names_every_verifier_option_and_instruction():
    for name, _, options in list_verifiers():
        start = PAGE.index(f"### `{name}`")
        section = PAGE[start : PAGE.find("\n##", start + 1)]
        if name != "math":
            assert all(f"- `{option}` (" in section for option in options), name
    assert all(f"- `{option}` (" in PAGE for option in ForeignOptions.model_fields)
    assert all(f"`{kind}`" in PAGE for kind in KINDS)


def test_every_toml_example_on_the_page_is_a_recipe_that_builds():
    examples = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) >= len(NEEDED)
    for text in examples:
        section = make_recipe(tomllib.loads(text)).verifier
        if not section.name.startswith("trl:"):
            make_verifier(section.name, mode=section.mode, options=section.options)


def test_every_python_example_on_the_page_runs():
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(text, "docs/verifiers.md", "exec"), {})
