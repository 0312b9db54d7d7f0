"""What survives a private release: edges, and the AUROC of PPMI, on a simulated hospital of five sites.

    python -m benchmarks private_release

M is chosen by ``best_pairs`` from another simulated hospital, as one would choose it from public data. *Central* adds
noise once to the sum of all sites, which is what `cogstage federate` gives; *local* adds noise at every site and merges
the releases. Pairs of a fact are told from pairs of the same kinds of terms that no rule joins; a pair that was not
released has PPMI 0. Figures of noisy graphs are means over several releases.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.harness import parser, report
from benchmarks.hospital import RULES, Hospital, Plan
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.mechanism import best_pairs, mechanism_for
from cogstage.graph.merge import merge_graphs
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.graph.releasing import private_release
from cogstage.statistics import auroc

FULL = Plan(terms=200, groups=5, patients=30_000, notes=2, table=0, least=60, known=1.0)
QUICK = replace(FULL, terms=100, groups=3, patients=1_500, least=15)
SITES, DRAWS, DELTA = 5, 5, 1e-6
EPSILONS = (0.5, 1.0, 3.0)


def main(argv: list[str] | None = None) -> None:
    """Print a row per kind of release."""
    asked = parser(__doc__).parse_args(argv)
    plan, begun = QUICK if asked.quick else FULL, time.perf_counter()
    hospital = Hospital(plan)
    pairs, label = labelled_pairs(hospital)
    with tempfile.TemporaryDirectory() as folder:
        public = _sites(Hospital(replace(plan, seed=1, patients=500)), Path(folder) / "public", None, 1)
        most = best_pairs(pairs_per_patient(Path(folder) / "public" / "0.jsonl", hospital))
        exact = merge_graphs(_sites(hospital, Path(folder) / "exact", None, SITES))
        sites = _sites(hospital, Path(folder) / "bounded", most, SITES)
    del public
    bounded = merge_graphs(sites)
    rows = [
        _row("exact", exact, [exact], hospital, pairs, label),
        _row(f"at most {most} pairs per patient", exact, [bounded], hospital, pairs, label),
    ]
    for epsilon in EPSILONS:
        private = PrivacyOptions(epsilon, DELTA, most)
        for name, make in (("central", lambda p: private_release(bounded, p)), ("local", lambda p: _local(sites, p))):
            graphs = [graph for graph in (_released(make, private) for _ in range(DRAWS)) if graph is not None]
            title = f"ε = {epsilon:g}, {name}"
            row = _row(title, exact, graphs, hospital, pairs, label)
            rows.append({**row, "τ": mechanism_for(private).threshold})
    notes = {"patients": plan.patients, "terms": plan.terms, "sites": SITES, "M": most, "delta": DELTA, "draws": DRAWS}
    report("private_release", rows, asked.out, {**notes, "seconds": time.perf_counter() - begun})


def _sites(hospital: Hospital, folder: Path, most: int | None, n: int) -> list[Graph]:
    """The graphs of ``n`` equal parts of the patients."""
    folder.mkdir(parents=True)
    entries = [Entry(*row) for row in zip(hospital.name, hospital.concept, hospital.name, hospital.kind, strict=True)]
    lexicon, size = Lexicon.build(entries), hospital.plan.patients // n
    options = BuildOptions(unit="patient-window", window=30, per="patient", pairs_per_patient=most)
    graphs = []
    for site in range(n):
        notes = folder / f"{site}.jsonl"
        with notes.open("w", encoding="utf-8") as handle:
            handle.writelines(json.dumps(note) + "\n" for note in hospital.notes(site * size, (site + 1) * size))
        build_graph(notes, folder / str(site), lexicon, options, workers=1)
        graphs.append(Graph.load(folder / str(site)))
    return graphs


def pairs_per_patient(notes: Path, hospital: Hospital) -> np.ndarray:
    """Numbers of pairs of the patients of other data, roughly: all terms that a note names are together."""
    numbers: dict[str, int] = {}
    for line in notes.read_text(encoding="utf-8").splitlines():
        note = json.loads(line)
        n = sum(name in note["text"] for name in hospital.name)
        numbers[note["patient_id"]] = numbers.get(note["patient_id"], 0) + n * (n - 1) // 2
    return np.array(list(numbers.values()))


def labelled_pairs(hospital: Hospital) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of terms (n, 2), and whether they are a fact's: as many others of the same kinds, which no rule joins."""
    rng, pairs, label = np.random.default_rng(0), [], []
    for relation, rows in hospital.facts().items():
        kinds = RULES[relation][:2]
        members = [np.array([t for t, kind in enumerate(hospital.kind) if kind == wanted]) for wanted in kinds]
        others = np.stack([rng.choice(ids, 20 * len(rows)) for ids in members], 1)
        joined = np.zeros(len(others), bool)
        for other, rule in RULES.items():
            if rule[:2] == kinds:
                joined |= hospital.follows(other, others[:, 0], others[:, 1])
        others = others[~joined][: len(rows)]
        pairs += [rows, others]
        label += [np.ones(len(rows), bool), np.zeros(len(others), bool)]
    return np.concatenate(pairs), np.concatenate(label)


def _released(make, private: PrivacyOptions) -> Graph | None:  # type: ignore[no-untyped-def]
    try:
        return make(private)
    except CogstageError:  # nothing reached the threshold
        return None


def _local(sites: list[Graph], private: PrivacyOptions) -> Graph:
    return merge_graphs([private_release(site, private) for site in sites])


def _row(
    title: str, exact: Graph, graphs: list[Graph], hospital: Hospital, pairs: np.ndarray, label: np.ndarray
) -> dict[str, object]:
    """Share of the exact graph's edges and of their counts, and AUROC."""
    weight = dict(_edges(exact))
    kept = [[weight[pair] for pair, _ in _edges(graph)] for graph in graphs]
    return {
        "release": title,
        "τ": None,
        "share of edges": float(np.mean([len(each) / len(weight) for each in kept])) if graphs else 0.0,
        "share of counts": float(np.mean([sum(each) / sum(weight.values()) for each in kept])) if graphs else 0.0,
        "AUROC": float(np.mean([_auroc(graph, hospital, pairs, label) for graph in graphs])) if graphs else 0.5,
    }


def _edges(graph: Graph) -> list[tuple[tuple[str, str], int]]:
    term = graph.vocabulary.term
    rows = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return [((term[s], term[t]), n) for s, t, n in rows]


def _auroc(graph: Graph, hospital: Hospital, pairs: np.ndarray, label: np.ndarray) -> float:
    node = np.array([graph.vocabulary.index.get(concept, -1) for concept in hospital.concept])
    ends, ppmi = node[pairs], graph.ppmi()
    known = (ends >= 0).all(1)
    score = np.zeros(len(pairs))
    score[known] = np.asarray(ppmi[ends[known, 0], ends[known, 1]]).ravel()
    value = auroc(label, score)
    assert value is not None
    return value


if __name__ == "__main__":
    main()
