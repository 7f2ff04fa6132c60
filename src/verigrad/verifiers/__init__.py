"""Verifiers: text -> Verdict. Ours, compositions of them, and rewards brought from elsewhere."""

from verigrad.verifiers.export import as_trl_reward, as_verl_compute_score
from verigrad.verifiers.foreign.verifier import ForeignVerifier, wrap_reward
from verigrad.verifiers.registry import describe, list_verifiers, make_verifier

__all__ = [
    "ForeignVerifier",
    "as_trl_reward",
    "as_verl_compute_score",
    "describe",
    "list_verifiers",
    "make_verifier",
    "wrap_reward",
]
