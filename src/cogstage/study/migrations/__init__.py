"""The history of the study's tables, oldest first in ``versions/``."""
