"""One app: explorer, study, JSON API."""
