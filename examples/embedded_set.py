"""The embedded data set in a few lines: train may_treat, explain a pair, and rank new candidates.

    python examples/embedded_set.py

Takes a few minutes. Many facts are weak labels, and half of the literature is old: nothing here is medical advice.
"""

import tempfile
from pathlib import Path

import cogstage as cs
from cogstage.data import embedded
from cogstage.rationale.wording import in_words, status_in_words


def main() -> None:
    """Train, explain and rank candidates."""
    graph, facts = embedded.graph(), embedded.facts()
    with tempfile.TemporaryDirectory() as folder:
        data = cs.build_dataset(graph, facts, Path(folder) / "dataset", negatives="degree", seed=0)
        model = cs.CogStage("may_treat", seed=0).fit(graph, data)

        prediction = model.predict("Propranolol", "Angina Pectoris")
        print(prediction.statement)
        for reason in prediction.reasons:
            print(f"  {reason.share:+.3f}  {in_words(reason)} ({status_in_words(reason)})")

        drug = graph.vocabulary.find("Propranolol")
        disorders = model.ends("may_treat", "tail")
        likely = model.probabilities([drug] * len(disorders), disorders, "may_treat")
        print("\nWhat else it might treat, by this model:")
        for place in (-likely).argsort()[:10]:
            print(f"  {likely[place]:.2f}  {graph.vocabulary.name[disorders[place]]}")


if __name__ == "__main__":
    main()
