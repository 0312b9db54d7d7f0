"""The agent interface: a model's predictions over the Model Context Protocol."""
