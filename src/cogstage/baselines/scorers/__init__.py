"""Scorers: binary classifiers on the vectors of a head and a tail."""
