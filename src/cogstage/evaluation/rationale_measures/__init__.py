"""Measures of rationales that read Prediction records alone, one file each."""
