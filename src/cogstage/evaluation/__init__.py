"""Metrics, comparison tables, faithfulness, calibration, significance."""
