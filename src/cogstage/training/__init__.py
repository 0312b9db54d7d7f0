"""Fitting a model: batches, optimiser, checkpoints, several processes, calibration."""
