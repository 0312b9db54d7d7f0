"""The allowed values of options with a fixed set of choices."""

from __future__ import annotations

from typing import Any, Literal, get_args

from cogstage.errors import UsageError

Unit = Literal["auto", "document", "sentence", "visit", "patient-window"]
Window = Literal["1d", "7d", "30d", "90d", "180d", "365d", "ever"]
Per = Literal["bin", "patient"]
Noise = Literal["gaussian", "laplace"]
Level = Literal["concept", "term"]
Sex = Literal["female", "male"]
Copies = Literal["auto", "drop", "keep"]
Content = Literal["auto", "text", "codes", "both"]
Ambiguity = Literal["first", "all", "skip"]
EngineName = Literal["local", "spark"]
FactSource = Literal["annotated", "ctd", "sider", "medrt", "primekg", "hetionet"]
NegativeKind = Literal["uniform", "degree", "hard"]
SplitKind = Literal["random", "cold-head", "cold-tail", "time"]
SplitName = Literal["train", "dev", "test"]
World = Literal["open", "closed"]
Preset = Literal["default", "paper"]
PlantedBias = Literal["none", "overcalls", "undercalls"]
ProtocolName = Literal["sets", "crossover"]
JudgedBy = Literal["all", "first"]
FrameLibrary = Literal["pandas", "polars", "pyarrow"]
OutputFormat = Literal["text", "markdown", "latex", "html", "jsonl"]


def check_choice(parameter: str, value: object, choices: Any) -> None:
    """Raise unless ``value`` is one of the words of a Literal; the error names the parameter and the words."""
    if value not in get_args(choices):
        raise UsageError(f"`{parameter}` must be one of {', '.join(get_args(choices))}, not {value}")
