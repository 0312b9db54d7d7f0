"""The named configurations: "default", and "paper" for the published model."""

from __future__ import annotations

from cogstage.choices import Preset, check_choice
from cogstage.model.config import Config
from cogstage.options import Options


def preset_config(preset: str) -> Options:
    """Return the configuration of a preset; raise if the name is unknown."""
    check_choice("preset", preset, Preset)
    if preset == "paper":
        from cogstage.model.paper import PaperConfig

        return PaperConfig()
    return Config()
