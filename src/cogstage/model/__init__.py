"""The two models. Read ``paper.py`` for the published one; ``network.py`` and the three stages for the default."""
