"""Encoders and scorers, one file each, and the floor that every result is read against."""
