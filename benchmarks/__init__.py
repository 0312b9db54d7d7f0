"""Measurements against references, each as ratios in one run: ``python -m benchmarks NAME [--quick]``."""
