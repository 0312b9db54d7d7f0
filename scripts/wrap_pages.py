"""Wrap the prose of Markdown pages: python scripts/wrap_pages.py [FILE ...]

Only paragraphs and list items with a line above 100 characters, or with code cut in two, are changed. Code blocks,
tables, headings and HTML stay as they are. Without files, all pages of the repository are wrapped.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = WIDTH = 100
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
STAYS = re.compile(r"\s*(?:\||#|<|>|!\[|\[[^\]]+\]:|=+$|-{3,}$)")


def blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Groups of lines, each with whether it is a paragraph or list item that may be wrapped."""
    part: list[str] = []
    fenced = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        apart = fenced or fence or not line.strip() or STAYS.match(line)
        indented = not part and line.startswith("    ") and not ITEM.match(line)
        if apart or indented:
            if part:
                yield True, part
            yield False, [line]
            part = []
        elif ITEM.match(line) and part:
            yield True, part
            part = [line]
        else:
            part.append(line)
        fenced ^= fence
    if part:
        yield True, part


def visible(line: str) -> int:
    """Length of a line without the addresses of its links."""
    return len(re.sub(r"\]\([^)]*\)|https?://\S+", "]", line))


def wrap(text: str) -> str:
    """The page with long paragraphs wrapped."""
    out: list[str] = []
    for free, part in blocks(text.splitlines()):
        if not free or all(visible(line) <= LONGEST and line.count("`") % 2 == 0 for line in part):
            out += part
            continue
        marker = ITEM.match(part[0])
        first = marker.group() if marker else re.match(r"\s*", part[0]).group()  # type: ignore[union-attr]
        rest = " " * len(first)
        words = re.sub(r"\]\([^)]*\)|`[^`]{1,60}`", _unbroken, " ".join(" ".join(part).split()))
        words = words[len(first.strip()) :].lstrip() if marker else words
        filled = textwrap.fill(
            words, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )
        out += filled.replace("\0", " ").splitlines()
    return "\n".join(out) + "\n"


def _unbroken(found: re.Match[str]) -> str:
    return found.group().replace(" ", "\0")


def main() -> None:
    """Wrap the pages that are named, or all."""
    named = [Path(name) for name in sys.argv[1:]]
    for page in named or sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        text = page.read_text(encoding="utf-8")
        if (wrapped := wrap(text)) != text:
            page.write_text(wrapped, encoding="utf-8")
            print(page)


if __name__ == "__main__":
    main()
