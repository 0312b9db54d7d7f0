"""The embedded data set and the demo that runs on it."""
