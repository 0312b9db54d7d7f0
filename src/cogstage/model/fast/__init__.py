"""Kernels and batching behind functions with the same meaning as the plain ones."""
