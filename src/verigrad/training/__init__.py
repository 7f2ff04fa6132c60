"""Groups in, weights out: the loop, the supervised start, evaluation and checkpoints."""
