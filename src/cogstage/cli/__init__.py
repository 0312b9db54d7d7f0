"""One thin file a command group; no logic."""
