"""From your own tables to a rationale: read counts and facts, then predict with reasons.

    python examples/own_tables.py

The script simulates the tables, so that it runs as it is: in six families of drugs and disorders, the drugs of a family
co-occur with its disorders and treat most of them. Replace the file names by those of your own tables.
"""

import random
import tempfile
from pathlib import Path

import cogstage as cs

FAMILIES, MEMBERS = 6, 8


def write_tables(folder: Path) -> None:
    """Write terms.tsv, counts.tsv and facts.tsv."""
    chance = random.Random(0)
    drugs = [(f"drug {family}.{number}", family) for family in range(FAMILIES) for number in range(MEMBERS)]
    disorders = [(f"disorder {family}.{number}", family) for family in range(FAMILIES) for number in range(MEMBERS)]
    terms = [f"{name}\tdrug" for name, _ in drugs] + [f"{name}\tdisorder" for name, _ in disorders]
    (folder / "terms.tsv").write_text("\n".join(["term\ttype", *terms]) + "\n")

    counts, nodes = ["source\ttarget\tcount"], drugs + disorders
    for place, (one, family) in enumerate(nodes):
        for other, other_family in nodes[place + 1 :]:
            count = chance.randint(0, 12) if family == other_family else chance.choice([0, 0, 0, 1])
            if count:
                counts.append(f"{one}\t{other}\t{count}")
    (folder / "counts.tsv").write_text("\n".join(counts) + "\n")

    facts = ["head\trelation\ttail"]
    for drug, family in drugs:
        for disorder, other_family in disorders:
            if family == other_family and chance.random() < 0.7:
                facts.append(f"{drug}\tmay_treat\t{disorder}")
    (folder / "facts.tsv").write_text("\n".join(facts) + "\n")


def main() -> None:
    """The whole way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        graph = cs.import_edges(folder / "counts.tsv", folder / "terms.tsv")
        facts = cs.facts_from_table(folder / "facts.tsv")
        data = cs.build_dataset(graph, facts, folder / "dataset", negatives="degree", seed=0)
        small = {"dimension": 32, "tower": 32, "associations": 8}  # so few terms need no more
        model = cs.CogStage("may_treat", seed=0, **small).fit(graph, data)
        model.save(folder / "model")

        test = data.pairs("may_treat", "test")
        right = (model.probabilities(test.head, test.tail, "may_treat") >= 0.5) == test.label
        print(f"{graph.n_nodes} terms, {len(facts)} facts; {right.mean():.0%} of {len(test)} test pairs are right")
        chosen = test.label.argmax()  # the first true one
        prediction = model.predict(int(test.head[chosen]), int(test.tail[chosen]))
        print(f"{prediction.head.name} may treat {prediction.tail.name}: {prediction.probability:.2f}, because")
        for reason in prediction.reasons:
            print(f"  {reason.share:+.3f}  {reason.head.name} {reason.relation} {reason.tail.name}")


if __name__ == "__main__":
    main()
