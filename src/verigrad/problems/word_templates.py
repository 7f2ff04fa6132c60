"""All templates of the generated word problems, in the order of their steps."""

from __future__ import annotations

from verigrad.problems.word_template import Template
from verigrad.problems.word_templates_one import ONE_STEP
from verigrad.problems.word_templates_three import THREE_STEPS
from verigrad.problems.word_templates_two import TWO_STEPS

TEMPLATES: tuple[Template, ...] = ONE_STEP + TWO_STEPS + THREE_STEPS
