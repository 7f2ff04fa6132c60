"""Errors: one exit code each, and a message that says what was meant."""

from __future__ import annotations

import inspect

import pytest

from verigrad import errors
from verigrad.errors import MissingExtraError, VerigradError, nearest

EXIT_CODES = {
    "VerigradError": 1,
    "UsageError": 2,
    "RecipeError": 2,
    "ProblemError": 2,
    "RunDirectoryError": 2,
    "MissingExtraError": 2,
    "VerifierError": 1,
    "TrainingError": 1,
    "TripwireError": 1,
    "CheckpointError": 1,
    "RefusedError": 3,
}


def classes() -> dict[str, type[VerigradError]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name: kind for name, kind in found if kind.__module__ == errors.__name__}


def test_every_error_has_its_exit_code():
    assert {name: kind.exit_code for name, kind in classes().items()} == EXIT_CODES


def test_every_error_is_drawn_in_the_tree_with_its_exit_code():
    tree = {
        line.strip("│├└─ ").split()[0]: line.partition("exit ")[2][:1]
        for line in (errors.__doc__ or "").splitlines()
        if "Error" in line
    }
    assert tree.pop("VerigradError") == ""
    assert tree == {n: str(code) for n, code in EXIT_CODES.items() if n != "VerigradError"}


@pytest.mark.parametrize("kind", classes().values(), ids=list(classes()))
def test_what_the_user_can_mend_is_a_value_error_and_nothing_else_is(kind):
    assert issubclass(kind, VerigradError)
    assert issubclass(kind, ValueError) == (kind.exit_code == 2)


def test_a_missing_extra_names_purpose_package_and_command():
    message = str(MissingExtraError("peft", "peft", "model.lora"))
    assert message == (
        "model.lora needs the package 'peft', which is not installed. "
        "Install it with: pip install 'verigrad[peft]'"
    )


def test_the_nearest_name_is_offered_or_all_are():
    assert nearest("clip_hihg", ["clip_low", "clip_high"]) == " Did you mean 'clip_high'?"
    assert nearest("zzz", ["b", "a"]) == " Known names: a, b."
