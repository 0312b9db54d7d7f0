"""Tables, plots and reports in every format: used by each package that shows figures to people."""

from cogstage.reporting.figures import estimate_text, figure_text, interval_text, json_ready, minus, p_text
from cogstage.reporting.plots import Plot
from cogstage.reporting.report import Report, Section
from cogstage.reporting.table import Cell, Table, csv_text

__all__ = [
    "Cell",
    "Plot",
    "Report",
    "Section",
    "Table",
    "csv_text",
    "estimate_text",
    "figure_text",
    "interval_text",
    "json_ready",
    "minus",
    "p_text",
]
