"""Text out of HTML and XML, in time linear in its length however broken the markup is."""

from __future__ import annotations

import html
import re

_SILENT = re.compile(r"(script|style)\b", re.IGNORECASE)  # elements whose content is not text
_CLOSING = {
    "script": re.compile(r"</script\s*>", re.IGNORECASE),
    "style": re.compile(r"</style\s*>", re.IGNORECASE),
}


def text_of_markup(text: str) -> str:
    """The text without its tags, a space instead of each; scripts and styles go with their content."""
    parts: list[str] = []
    unclosed: set[str] = set()  # elements that close nowhere further on: looked for once, not at every tag
    begin = 0
    while (start := text.find("<", begin)) >= 0:
        parts.append(text[begin:start])
        end = text.find(">", start)
        if end < 0:  # no tag closes any more
            parts.append(text[start:])
            begin = len(text)
            break
        silent = _SILENT.match(text, start + 1)
        name = silent[1].lower() if silent else ""
        if name and name not in unclosed:
            closing = _CLOSING[name].search(text, start)
            if closing is not None:
                end = closing.end() - 1
            else:
                unclosed.add(name)
        parts.append(" ")
        begin = end + 1
    parts.append(text[begin:])
    return html.unescape("".join(parts))
