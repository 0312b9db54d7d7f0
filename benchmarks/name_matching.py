"""How many names are still placed on the right node when somebody else writes them.

    python -m benchmarks name_matching --facts FACTS.tsv --lexicon LEXICON.tsv

Takes the names of a facts table that match one concept as they stand, writes each in other ways, one kind of difference
at a time, and reads the messy table with ``facts_from_table``. The last row asks for names whose concept is not there,
which should be placed nowhere. Without options: the names of the embedded graph.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness import parser, report

# American to British, wherever a word has one of these pieces.
BRITISH = {
    r"\bhem(?=[aiot])": "haem", r"hemorrh": "haemorrh", r"\banem": "anaem", r"(?<![aeo])emia\b": "aemia",
    r"(?<![aeo])emic\b": "aemic", r"(?<!o)edema": "oedema", r"(?<![od])estr(?=[aoiu])": "oestr", r"tumor": "tumour",
    r"sulf": "sulph", r"\bfet(?=al|us)": "foet", r"(?<!o)esophag": "oesophag", r"rrhea": "rrhoea", r"pnea": "pnoea",
    r"\bpediatr": "paediatr", r"\bgynec": "gynaec", r"anesth": "anaesth", r"cesar": "caesar", r"fiber": "fibre",
    r"aluminum": "aluminium", r"\bcec(?=al|um|itis)": "caec", r"\bceliac": "coeliac", r"(?<!a)emia(?=\b)": "aemia",
    r"\bfec(?=al|es)": "faec", r"\bameb": "amoeb", r"\bcolor": "colour", r"izat": "isat", r"yze\b": "yse",
    r"\bgray\b": "grey", r"orthoped": "orthopaed", r"behavior": "behaviour", r"\bcenter": "centre",
    r"\betiol": "aetiol", r"hematur": "haematur", r"hematoma": "haematoma",
}  # fmt: skip
AMERICAN = {"aem": "em", "oed": "ed", "oea": "ea", "our\\b": "or", "sulph": "sulf", "oestr": "estr", "oeso": "eso"}
SUFFIXES = (" (disorder)", " (substance)", " (finding)", " (product)", " (disease)", ", NOS", " [Disease/Finding]")


def case(name: str, rng: random.Random) -> list[str]:
    """Capitals, title case, and letters of any case."""
    return [name.upper(), name.title(), "".join(rng.choice((c.upper(), c.lower())) for c in name)]


def hyphens(name: str, rng: random.Random) -> list[str]:
    """Hyphens for spaces, spaces for hyphens, hyphens left out."""
    return [name.replace(" ", "-"), name.replace("-", " "), name.replace("-", "")]


def plural(name: str, rng: random.Random) -> list[str]:
    """The last word in the other number."""
    start, word = re.fullmatch(r"(.*?)([^\W\d_]*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    if len(word) < 4 or (start and start[-1] not in " -"):
        return []
    return [start + other for other in _other_number(word)]


def _other_number(word: str) -> list[str]:
    low = word.lower()
    for singular, several in (("sis", "ses"), ("xis", "xes"), ("lus", "li"), ("itis", "itides"), ("li", "lus")):
        if low.endswith(singular):
            return [word[: -len(singular)] + several]
    if low.endswith(("us", "is", "i", "ss", "ium", "diabetes", "herpes", "rabies", "ascites", "scabies")):
        return []  # no plural that anybody writes
    if low.endswith("ies"):
        return [word[:-3] + "y"]
    if low.endswith(("sses", "xes", "ches", "shes")):
        return [word[:-2]]
    if low.endswith("ses"):
        return [word[:-1]]
    if low.endswith("s"):
        return [word[:-1]]
    if low.endswith("y") and low[-2] not in "aeiou":
        return [word[:-1] + "ies"]
    return [word + ("es" if low.endswith(("x", "ch", "sh")) else "s")]


def order(name: str, rng: random.Random) -> list[str]:
    """The last word first, with and without a comma; a comma taken back; any order of three words or more."""
    if "," in name and ", " not in name:
        return []  # the commas of a systematic name
    if ", " in name:
        last, first = name.split(", ", 1)
        return [f"{first} {last}"]
    words = name.split(" ")
    if len(words) < 2:
        return []
    shuffled = rng.sample(words, len(words))
    turned = [f"{words[-1]}, {' '.join(words[:-1])}", " ".join([words[-1], *words[:-1]])]
    return [*turned, " ".join(shuffled)] if len(words) > 2 else turned


def suffix(name: str, rng: random.Random) -> list[str]:
    """Tags that terminologies add."""
    return [name + rng.choice(SUFFIXES)]


def spelling(name: str, rng: random.Random) -> list[str]:
    """British for American spelling, and the reverse."""
    british, american = name.lower(), name.lower()
    for found, other in BRITISH.items():
        british = re.sub(found, other, british)
    for found, other in AMERICAN.items():
        american = re.sub(found, other, american)
    return [british, american]


KINDS: dict[str, Callable[[str, random.Random], list[str]]] = {
    "case": case,
    "hyphens and spaces": hyphens,
    "plural or singular": plural,
    "word order": order,
    "suffix": suffix,
    "British or American": spelling,
}


def written_otherwise(names: Iterable[str], kind: str, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs (messy, name) of this kind; ways of writing that change nothing are left out."""
    rng = random.Random(seed)
    return [
        (other, name)
        for name in names
        for other in dict.fromkeys(KINDS[kind](name, rng))
        if other != name and (kind in ("case", "suffix") or other.lower() != name.lower())
    ]


def placed(messy: list[str], names: Any) -> list[str]:
    """The node or concept on which ``facts table`` puts each name; its own text where it puts it on none."""
    from cogstage.knowledge.table import facts_from_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messy.tsv"
        rows = "".join(f"{name}\tcauses\trow {number}\n" for number, name in enumerate(messy))
        path.write_text("head\trelation\ttail\n" + rows, encoding="utf-8")
        facts = facts_from_table(path, names)
    found = {int(tail.rpartition(" ")[2]): head for head, tail in zip(facts.head, facts.tail, strict=True)}
    return [found[number] for number in range(len(messy))]


def measure(table_names: list[str], names: Any, seed: int = 0) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """A row per kind of difference, and what was placed wrongly or, though its node is there, not at all."""
    truth = {name: found[0] for name in table_names if len(found := names.find(name, loosely=False)[0]) == 1}
    rows: list[dict[str, Any]] = []
    problems: dict[str, list[str]] = {}
    for kind in KINDS:
        pairs = [pair for pair in written_otherwise(truth, kind, seed) if "\t" not in pair[0]]
        # Written otherwise, some names are the very name of something else; nobody can know which is meant.
        pairs = [(messy, name) for messy, name in pairs if names.find(messy, loosely=False)[0] in ((), (truth[name],))]
        where = placed([messy for messy, _ in pairs], names)
        right = wrong = 0
        for (messy, name), concept in zip(pairs, where, strict=True):
            if concept == truth[name]:
                right += 1
                continue
            known = concept in names.concepts
            wrong += known
            problems.setdefault(kind, []).append(f"{messy!r} -> {concept if known else 'nothing'} (is {name!r})")
        rows.append(_row(kind, len({name for _, name in pairs}), len(pairs), right, wrong))
    rows.append(_absent(truth, names, seed, problems))
    return rows, problems


def _absent(truth: dict[str, str], names: Any, seed: int, problems: dict[str, list[str]]) -> dict[str, Any]:
    """Names of every tenth concept, written in all ways, while these concepts are taken out."""
    out = set(sorted(set(truth.values()))[::10])
    without = type(names).from_pairs(
        ((name, concept) for name, found in names.named.items() for concept in found if concept not in out),
        names.types,
    )
    asked = [name for name, concept in truth.items() if concept in out]
    messy = sorted({other for kind in KINDS for other, _ in written_otherwise(asked, kind, seed)}.union(asked))
    messy = [other for other in messy if not without.find(other, loosely=False)[0]]  # the very name of something else
    where = placed(messy, without)
    wrong = [
        f"{other!r} -> {concept}" for other, concept in zip(messy, where, strict=True) if concept in without.concepts
    ]
    problems["concept not there"] = wrong
    return _row("concept not there", len(asked), len(messy), 0, len(wrong))


def _row(kind: str, names: int, ways: int, right: int, wrong: int) -> dict[str, Any]:
    shares = {"right (%)": right, "wrong (%)": wrong, "unmatched (%)": ways - right - wrong}
    percent = {title: round(100 * count / max(1, ways), 2) for title, count in shares.items()}
    return {"kind": kind, "names": names, "ways of writing": ways, **percent}


def main(argv: list[str] | None = None) -> None:
    """Print a row per kind."""
    from cogstage.knowledge.matching import Names
    from cogstage.tables import read_rows

    options = parser(__doc__)
    options.add_argument("--facts", type=Path, nargs="+", help="Tables with head and tail.")
    options.add_argument("--lexicon", type=Path, help="Lexicon table; the embedded graph by default.")
    options.add_argument("--show", type=int, default=0, help="Number of problems of each kind to print.")
    asked = options.parse_args(argv)
    if asked.lexicon is not None:
        names = Names.from_lexicon(asked.lexicon)
    else:
        from cogstage.data.embedded import graph

        names = Names.from_vocabulary(graph().vocabulary)
    if asked.facts:
        wanted = {str(row[end]).strip() for row in read_rows(asked.facts, ["head", "tail"]) for end in ("head", "tail")}
    else:
        wanted = set(names.named)
    listed = sorted(wanted)[:: 20 if asked.quick else 1]
    as_written = sum(bool(names.find(name)[0]) for name in listed)
    rows, problems = measure(listed, names)
    report("name_matching", rows, asked.out, {"names": len(listed), "placed as written": as_written})
    for kind, lines in problems.items():
        for line in random.Random(1).sample(lines, min(asked.show, len(lines))):
            print(f"{kind}: {line}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
