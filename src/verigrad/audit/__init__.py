"""Is this reward honest? Right answers must pass; near misses and known hacks must fail.

    report = audit_verifier(verifier, problems)
    print("\\n".join(report.lines()))

Every call is made in a child process under a deadline. Loads without torch.
"""

from verigrad.audit.report import AuditReport, Finding, ProbeRow
from verigrad.audit.run import audit_recipe, audit_spec, audit_verifier
from verigrad.audit.sample import sample_problems

__all__ = [
    "AuditReport",
    "Finding",
    "ProbeRow",
    "audit_recipe",
    "audit_spec",
    "audit_verifier",
    "sample_problems",
]
