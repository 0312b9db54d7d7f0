"""Training: batches, steps, checkpoints, several processes."""
