"""Facts from knowledge bases; data sets with negatives, splits, manifest and leakage report."""
