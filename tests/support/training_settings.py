"""Options with which training is quick and still learns planted data."""

SMALL = {"dimension": 16, "associations": 6, "tower": 16, "recognition_passes": 3, "folds": 2}
QUICK = {**SMALL, "decision_epochs": 1, "decision_steps": 0}
PAPER = {"pair_batch": 64, "negatives": 10, "epochs": 3, "minimum_epochs": 0, "dimension": 16, "associations": 6}
