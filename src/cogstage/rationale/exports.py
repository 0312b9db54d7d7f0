"""Export predictions for other tools: flat tables, KGX, GraphML, Graphviz."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from cogstage.artefact import new_file, write_text
from cogstage.errors import UsageError
from cogstage.rationale.record import Order, PairEvidence, Prediction, Reason, Signal, Term
from cogstage.rationale.wording import in_words, opposite_flags, triple_phrase, verdict_words
from cogstage.relations import inverse, is_inverse
from cogstage.reporting.escape import spreadsheet

FORMATS = ("jsonl", "tsv", "parquet", "kgx", "graphml", "dot")


def export(predictions: Sequence[Prediction], path: Path, form: str) -> list[Path]:
    """Write predictions to ``path`` in one of :data:`FORMATS`; the files that were written."""
    if form == "kgx":
        from cogstage.rationale.kgx import kgx

        nodes, edges = kgx(predictions)
        paths = [path.with_name(f"{path.stem}_{part}.tsv") for part in ("nodes", "edges")]
        for target, rows in zip(paths, (nodes, edges), strict=True):
            write_text(target, table(rows))
        return paths
    if form == "parquet":
        _write_parquet(rows_of(predictions), path)
    elif form == "tsv":
        write_text(path, table(rows_of(predictions)))
    elif form == "jsonl":
        write_text(path, "".join(prediction.to_json() + "\n" for prediction in predictions))
    elif form == "graphml":
        write_text(path, graphml(predictions))
    elif form == "dot":
        write_text(path, dot(predictions))
    else:
        raise UsageError(f"unknown format {form}; choose one of {', '.join(FORMATS)}")
    return [path]


def rows_of(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """One row per reason, the prediction's own figures on every row; a prediction without reasons keeps one row."""
    rows = []
    for p in predictions:
        reasons = [reason_columns(rank, reason) for rank, reason in enumerate(p.reasons, start=1)]
        rows += [{**prediction_columns(p), **columns} for columns in reasons or [NO_REASON]]
    return rows


def reason_rows(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """One row per reason with the pair it belongs to: a table beside one with a row per prediction."""
    return [
        {"head": p.head.key, "relation": p.relation, "tail": p.tail.key, "rank": p.rank, **reason_columns(rank, reason)}
        for p in predictions
        for rank, reason in enumerate(p.reasons, start=1)
    ]


def prediction_columns(p: Prediction) -> dict[str, Any]:
    """The figures of a prediction, without its reasons."""
    return {
        "head": p.head.key,
        "head_name": p.head.name,
        "relation": p.relation,
        "tail": p.tail.key,
        "tail_name": p.tail.name,
        "rank": p.rank,
        "verdict": p.verdict,
        "contradicted_by": p.contradicted_by,
        "opposite": "; ".join(opposite_flags(p)),
        "statement": p.statement,
        "probability": p.probability,
        "base_rate": p.base_rate,
        "logit": p.logit,
        "baseline": p.baseline,
        **pair_columns(p.pair),
        "rest": p.rest,
        "known_fact": p.known_fact,
        "types_fit": p.types_fit,
        "profile": profile_json(p),
        **order_columns("", p.order),
        **signal_columns(p.signal),
    }


def profile_json(prediction: Prediction) -> str:
    """All relations of the pair with probability and verdict, as a JSON object by relation."""
    profile = {
        entry.relation: {"probability": round(entry.probability, 6), "verdict": verdict_words(entry)}
        for entry in prediction.profile
    }
    return json.dumps(profile, ensure_ascii=False)


REASON_COLUMNS = (
    "rank",
    "head",
    "head_name",
    "relation",
    "tail",
    "tail_name",
    "words",
    "status",
    "share",
    "effect",
    "probability",
    "known_fact",
    "types_fit",
    "count",
    "head_similarity",
    "tail_similarity",
    "head_first",
    "tail_first",
    "same_day",
)
NO_REASON = dict.fromkeys(f"reason_{name}" for name in REASON_COLUMNS)


def reason_columns(rank: int, reason: Reason) -> dict[str, Any]:
    """One reason in the columns :data:`REASON_COLUMNS`, each with ``reason_`` in front."""
    r, ends = reason, (reason.head_association, reason.tail_association)
    triple = (r.head.key, r.head.name, r.relation, r.tail.key, r.tail.name, in_words(r), r.status)
    figures = (r.share, r.effect, r.relation_probability, r.known_fact, r.types_fit, r.count)
    similarities = (None if end is None else end.similarity for end in ends)
    values = (rank, *triple, *figures, *similarities, *order_columns("", r.order).values())
    return dict(zip(NO_REASON, values, strict=True))


def pair_columns(pair: PairEvidence | None) -> dict[str, Any]:
    """The counts of head and tail with their shares in the logit; empty for a model that does not use them."""
    names = ("count", "ppmi", "ppmi_share", "similarity", "similarity_share")
    return {f"pair_{name}": None if pair is None else getattr(pair, name) for name in names}


def order_columns(prefix: str, order: Order | None) -> dict[str, Any]:
    """In how many patients the head came first, the tail, both on one day; empty if it is not known."""
    names = ("head_first", "tail_first", "same_day")
    return {f"{prefix}{name}": None if order is None else getattr(order, name) for name in names}


def signal_columns(signal: Signal | None) -> dict[str, Any]:
    """ROR, PRR and IC with their intervals, and what they rest on; empty for a pair that has none."""
    columns: dict[str, Any] = {}
    for name in ("ror", "prr", "ic"):
        estimate = None if signal is None else getattr(signal, name)
        for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high")):
            columns[name + suffix] = None if estimate is None else getattr(estimate, end)
    for name in ("together", "total", "basis"):
        columns[f"signal_{name}"] = None if signal is None else getattr(signal, name)
    return columns


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as tab-separated text with a header; tabs and line breaks within values become spaces, formulas text."""
    if not rows:
        return ""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return stream.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):  # as KGX writes them
        return "|".join(map(_cell, value))
    return f"{value:.6g}" if isinstance(value, float) else spreadsheet(" ".join(str(value).split()))


def _write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with new_file(path) as temporary:
        pq.write_table(pa.Table.from_pylist(list(rows)), temporary, compression="zstd")


def read_forward(head: Term, relation: str, tail: Term) -> tuple[Term, str, Term]:
    """An inverse triple read forward, with its ends exchanged."""
    return (tail, inverse(relation), head) if is_inverse(relation) else (head, relation, tail)


def _network(predictions: Iterable[Prediction]) -> tuple[dict[str, Term], list[tuple[str, str, str, str, float]]]:
    """Terms and weighted lines (from, to, kind, label, weight): predictions, associations, reasons."""
    terms: dict[str, Term] = {}
    lines: dict[tuple[str, str, str, str], float] = {}

    def line(source: Term, target: Term, kind: str, label: str, weight: float) -> None:
        for term in (source, target):
            terms.setdefault(term.key, term)
        key = (source.key, target.key, kind, label)
        lines[key] = max(weight, lines.get(key, 0.0))

    for p in predictions:
        line(p.head, p.tail, "prediction", p.statement, p.probability)
        for r in p.reasons:
            for question, term, end in ((p.head, r.head, r.head_association), (p.tail, r.tail, r.tail_association)):
                if end is not None:
                    line(question, term, "association", "is similar to", end.similarity)
            subject, base, target = read_forward(r.head, r.relation, r.tail)
            line(subject, target, "reason", triple_phrase(base, r.recognised), abs(r.share))
    return terms, [(*key, weight) for key, weight in lines.items()]


def graphml(predictions: Iterable[Prediction]) -> str:
    """The predictions and their rationales as one directed GraphML graph."""
    terms, lines = _network(predictions)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'<key id="{name}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>'
            for name, owner, kind in (
                ("name", "node", "string"),
                ("type", "node", "string"),
                ("kind", "edge", "string"),
                ("label", "edge", "string"),
                ("weight", "edge", "double"),
            )
        ),
        '<graph edgedefault="directed">',
    ]
    for term in terms.values():
        data = f'<data key="name">{escape(term.name)}</data><data key="type">{escape(term.type)}</data>'
        parts.append(f"<node id={quoteattr(term.key)}>{data}</node>")
    for source, target, kind, label, weight in lines:
        values = {"kind": kind, "label": label, "weight": f"{weight:.6g}"}
        data = "".join(f'<data key="{key}">{escape(value)}</data>' for key, value in values.items())
        parts.append(f"<edge source={quoteattr(source)} target={quoteattr(target)}>{data}</edge>")
    return "\n".join([*parts, "</graph>", "</graphml>"]) + "\n"


def dot(predictions: Iterable[Prediction]) -> str:
    """The predictions and their rationales as a Graphviz digraph, line width by weight."""
    terms, lines = _network(predictions)
    styles = {"prediction": "bold", "association": "dotted", "reason": "solid"}
    strongest = {kind: max((w for *_, k, _, w in lines if k == kind), default=1.0) or 1.0 for kind in styles}
    parts = ["digraph cogstage {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    parts += [
        f"  {json.dumps(key)} [label={json.dumps(term.name, ensure_ascii=False)}];" for key, term in terms.items()
    ]
    parts += [
        f"  {json.dumps(source)} -> {json.dumps(target)} [label={json.dumps(label, ensure_ascii=False)}, "
        f"style={styles[kind]}, penwidth={0.8 + 3 * weight / strongest[kind]:.2f}];"
        for source, target, kind, label, weight in lines
    ]
    return "\n".join([*parts, "}"]) + "\n"
