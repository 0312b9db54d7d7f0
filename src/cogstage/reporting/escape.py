"""Text of unknown origin made safe for Markdown, LaTeX and spreadsheets."""

from __future__ import annotations

import re

_MARKDOWN = re.compile(r"[\\`*\[\]|]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|^[#>+]")
_FIGURE = re.compile(r"[-+−–±×/ 0-9.,%\[\]()]*(, n = \d+)?")
_LATEX = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "<": "$<$", ">": "$>$", "±": "$\\pm$", "×": "$\\times$", "≥": "$\\ge$", "≤": "$\\le$", "−": "$-$",
    "–": "--", "—": "---", "…": "\\ldots{}", "†": "$\\dagger$",
    "α": "$\\alpha$", "β": "$\\beta$", "δ": "$\\delta$", "ε": "$\\varepsilon$", "κ": "$\\kappa$", "τ": "$\\tau$",
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+]?(\d[\d,]*\.?\d*|\.\d+)([eE][-+]?\d+)?%?")


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def markdown(text: str) -> str:
    """Text for a paragraph or a table cell; numbers with their intervals stay as they are."""
    text = one_line(text)
    if _FIGURE.fullmatch(text):
        return text
    escaped = _MARKDOWN.sub(lambda match: "\\" + match.group(), text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def latex(text: str) -> str:
    """Text for LaTeX that needs no package."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def spreadsheet(text: str) -> str:
    """Text for a CSV or TSV cell: what a spreadsheet would run as a formula gets an apostrophe in front."""
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text
