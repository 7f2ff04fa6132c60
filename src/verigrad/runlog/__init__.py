"""The run directory: one writer, one reader. It is the only thing that leaves a run.

    runs/<name>/
      recipe.toml             the resolved recipe
      environment.json        versions, hashes, seed, machine
      status.json             {"state": "running|done|failed|interrupted", "step", "steps",
                              "message"} (atomic)
      metrics.jsonl           one record per step (see METRICS) and per supervised step
      rollouts/step-N.jsonl   every prompt, completion, verdict, reward, advantage, sampler
                              log-probability
      evaluations/NAME.json   one held-out evaluation (NAME: before, after-cold-start, step-N,
                              after)
      findings.jsonl          tripwires and warnings: name severity evidence cause remedy step
      notes.log               what the run said, with the time
      checkpoints/step-N/     Hugging Face format plus trainer state, written to a temporary name
                              and renamed
      latest                  name of the newest whole checkpoint (atomic)
      report.html             self-contained
      .lock                   held by the one process that writes

Append-only; a torn last line (power loss) is repaired on resume. One process writes. Loads without
torch.
"""

from verigrad.runlog.files import fsync_directory, machine_record, read_jsonl, write_atomic
from verigrad.runlog.names import METRICS
from verigrad.runlog.reader import RunReader
from verigrad.runlog.writer import Listener, RunWriter

__all__ = [
    "METRICS",
    "Listener",
    "RunReader",
    "RunWriter",
    "fsync_directory",
    "machine_record",
    "read_jsonl",
    "write_atomic",
]
