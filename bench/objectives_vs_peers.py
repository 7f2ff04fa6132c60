"""Claim: every objective that TRL, verl and polgrad compute, ours computes too, within 1e-5.

Run: python bench/objectives_vs_peers.py (needs: pip install trl==1.16.0 verl==0.9.1 polgrad). Each
pair runs the peer's own function and ours on the same random ragged batches and compares the loss
and its gradient with respect to the log-probabilities. Where the two differ by design, the pair
says who departs from the paper and how. Writes objectives_vs_peers.json beside this file; exit code
1 if a pair that should agree does not.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from peer_pairs import TOLERANCE, Pair, difference  # noqa: E402

SEEDS = range(6)
PEERS = ("trl", "verl", "polgrad")


def measure(pair: Pair) -> dict[str, Any]:
    """One line of the result: the differences and the verdict."""
    value, grad, ratio = difference(pair, SEEDS)
    close = value <= TOLERANCE and grad <= TOLERANCE
    verdict = "equal" if close else "deviates as documented" if pair.deviation else "DIFFERS"
    if close and pair.deviation:
        verdict = "EQUAL, yet a deviation is documented"
    return {
        "peer": pair.peer,
        "name": pair.name,
        "kind": pair.kind,
        "max_value_difference": value,
        "max_relative_gradient_difference": grad,
        "gradient_norm_theirs_over_ours": round(ratio, 4),
        "verdict": verdict,
        "deviation": pair.deviation,
    }


def main() -> int:
    """Compare with every peer; print a table; write the JSON."""
    results: list[dict[str, Any]] = []
    for peer in PEERS:
        results += [measure(pair) for pair in importlib.import_module(f"peers_{peer}").pairs()]
    for r in results:
        value, grad = r["max_value_difference"], r["max_relative_gradient_difference"]
        print(f"{r['peer']:8} {r['name']:52} {value:9.1e} {grad:9.1e}  {r['verdict']}")
    bad = [r for r in results if r["verdict"] not in ("equal", "deviates as documented")]
    equal = sum(r["verdict"] == "equal" for r in results)
    print(f"{len(results)} pairs: {equal} equal within {TOLERANCE}, {len(results) - equal} not")
    record = {
        "claim": "loss and gradient equal to the peers within 1e-5, or a documented deviation",
        "versions": {peer: version(peer) for peer in (*PEERS, "torch")},
        "batches": len(SEEDS),
        "pairs": len(results),
        "equal": equal,
        "documented_deviations": len(results) - equal - len(bad),
        "unexplained": len(bad),
        "results": results,
    }
    Path(HERE / "objectives_vs_peers.json").write_text(json.dumps(record, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
