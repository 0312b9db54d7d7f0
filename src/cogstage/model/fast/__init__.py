"""Compiled kernels behind functions with the same meaning as the plain ones in ``cogstage.model``."""
