"""Which assumptions of a model an expert should check first."""
