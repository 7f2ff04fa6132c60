"""Recipe: one TOML file says which model, problems, verifier, objective and settings.

Every section refuses unknown keys and answers a typo with the nearest one. The sentence beside each
field says what moves it; ``verigrad schema`` prints the same sentences as JSON Schema.
``objective`` accepts a preset and any axis of :class:`verigrad.objective.Objective`. Loads without
torch.
"""

from verigrad.config.read import make_recipe, read_recipe, recipe_schema, write_recipe
from verigrad.config.sections import (
    BackendSection,
    ColdStartSection,
    EvaluationSection,
    LoggingSection,
    LoRA,
    ModelSection,
    ObjectiveSection,
    ProblemsSection,
    Recipe,
    RolloutSection,
    Section,
    TinyModel,
    TrainingSection,
    Turn,
    VerifierSection,
)

__all__ = [
    "BackendSection",
    "ColdStartSection",
    "EvaluationSection",
    "LoRA",
    "LoggingSection",
    "ModelSection",
    "ObjectiveSection",
    "ProblemsSection",
    "Recipe",
    "RolloutSection",
    "Section",
    "TinyModel",
    "TrainingSection",
    "Turn",
    "VerifierSection",
    "make_recipe",
    "read_recipe",
    "recipe_schema",
    "write_recipe",
]
