"""Baselines: encoders and scorers (one file each), and the floor that every result is compared with."""
