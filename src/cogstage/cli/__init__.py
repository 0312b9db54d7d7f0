"""One thin file per command group; no logic."""
