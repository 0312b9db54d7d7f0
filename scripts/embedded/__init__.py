"""The steps that build the embedded data set; ``scripts/build_embedded.py`` runs them in order."""
