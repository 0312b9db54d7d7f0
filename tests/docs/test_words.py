"""Standard terms everywhere: no private dialect in documentation, code or tests, and prose in short lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from check_all import check_all

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
CODE = sorted(
    path
    for folder in ("src", "tests", "scripts", "benchmarks", "examples")
    for suffix in ("*.py", "*.html", "*.js", "*.md")
    for path in (ROOT / folder).rglob(suffix)
    if path.name not in ("test_words.py", "test_cli_help.py")  # they name the words
)
LONGEST, IN_RESULTS = 100, 120  # characters in a line of prose; captions of results come from reports
UNITS = (
    "bin|batch|case|column|core|CPU second|day|document|edge|entry|fact|file|head|hour|machine|method|minute|negative|"
    "node|note|page|pair|patient|piece|positive|process|processor second|relation|reviewer|row|second|seed|split|step|"
    "tail|task|term|token|triple|worker"
)
AMOUNTS = (
    "bars?|bits|bytes?|cells?|days|documents|edges|facts|files?|folders?|lines?|negatives?|numbers?|pages?|pairs|"
    "pieces?|predictions|reasons|requests|rows?|samples|seconds|steps|terms|values?|vectors?|walks|words|"
    r"MB/s|[kMG]B|\d ?m?s|\d(?:[\d,.]*\d)?"
)
DIALECT = re.compile(
    r"\bstreets?\b|\b(?:a|one|each|every|this) room\b|\brooms\b|\bleave the house\b|\bin the house\b|\bhouse rules\b"
    r"|\btells itself\b|\brandomness begins\b|\bwho(?:ever)? says yes to every\b|\btake over a graph\b"
    r"|\bis told of the pair\b|\bis said there too\b|\bfound nothing to say\b"
    rf"|\b(?:{AMOUNTS}) an? (?:{UNITS})\b(?! (?:has|had|is|was|holds|gives|keeps|needs|reads|by))",
    re.I,
)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of a Markdown page outside code blocks and tables."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|") and not line.startswith("    "):
            yield number, line


def test_no_private_dialect() -> None:
    private = (
        *("one negative a positive", "80 bytes a row, in blocks", "12,800 a second with context", "one page a room"),
        *("the whole street on the embedded data", "What may leave the house"),
    )
    plain = ("one negative per positive", "this is a term of the graph", "a pair holds a relation", "the disk has room")
    assert [bool(DIALECT.search(sentence)) for sentence in (*private, *plain)] == [True] * 6 + [False] * 4
    check_all(check_dialect, ((path,) for path in (*PAGES, *CODE)))


def check_dialect(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, match.start()) + 1, match.group()) for match in DIALECT.finditer(text)]
    assert not found


def test_prose_is_wrapped_and_code_is_fenced() -> None:
    check_all(check_prose, ((page,) for page in PAGES))


def check_prose(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    longest = IN_RESULTS if page.parent.name == "results" else LONGEST
    long = []
    for number, line in prose(text):
        shown = re.sub(r"\]\([^)]*\)|https?://\S+", "]", line)  # addresses cannot be wrapped
        if len(shown) > longest:
            long.append(number)
    assert not long, f"lines longer than {longest}; run python scripts/wrap_pages.py FILE"
    indented = re.findall(
        r"(?:^|\n)\n    (?=(?:cogstage|python|pip|from|import) )", re.sub(r"```.*?```", "", text, flags=re.S)
    )
    assert not indented, "indented code; use a fenced block with a language"
    assert not re.search(r"\n\n```\n", text), "a fenced block without a language"
