"""A read-only window on a run: the terminal view, the report, the pictures. Reads the run directory
only."""
