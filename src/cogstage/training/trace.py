"""The history of a training run: JSON lines, and TensorBoard event files if asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cogstage.errors import UsageError


class Recorder:
    """Takes one dictionary per round; figures of epochs also go to TensorBoard."""

    def __init__(self, trace: Path | str | None, tensorboard: Path | str | None) -> None:
        self._path = None if trace is None else Path(trace)
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.open("a", encoding="utf-8").close()
            except OSError as error:
                raise UsageError(f"{self._path} cannot be written: {error.strerror or error}") from error
        self._writer: Any = None
        if tensorboard is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise UsageError(
                    "TensorBoard is not installed; install cogstage[tensorboard] or leave `tensorboard` out"
                ) from None
            self._writer = SummaryWriter(str(tensorboard))

    def __call__(self, line: dict[str, Any]) -> None:
        """Write one round."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(line) + "\n")
        if self._writer is not None:
            for name, value in line.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{line['stage']}/{name}", value, line["round"])

    def close(self) -> None:
        """Finish the event files."""
        if self._writer is not None:
            self._writer.close()
