"""Verifiers: text -> Verdict. Ours, compositions of them, and reward functions brought from elsewhere."""

from verigrad.verifiers.registry import describe, list_verifiers, make_verifier

__all__ = ["describe", "list_verifiers", "make_verifier"]
