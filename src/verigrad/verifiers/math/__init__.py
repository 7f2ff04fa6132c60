"""Maths answers: our own reader, exact arithmetic, four outcomes. Nothing is ever run as code."""

from verigrad.verifiers.math.verifier import MathVerifier, judge

__all__ = ["MathVerifier", "judge"]
