"""``CogStage``: fit, predict, save and load a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.choices import SplitName, check_choice
from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView
from cogstage.model.presets import preset_config
from cogstage.model_folder import Fitted, graph_fields
from cogstage.progress import Progress, default_progress
from cogstage.reporting.table import Table
from cogstage.statistics import auroc
from cogstage.trained_model import TrainedModel

OWN_PARAMETERS = ("relation", "preset", "seed")  # the others are options of the configuration


class CogStage(TrainedModel):
    """A model that predicts relations between two terms, with reasons that add up to each prediction.

    Parameters
    ----------
    relation
        One relation, a list of relations, or "all" relations of the data set.
    preset
        "default", or "paper" for the published model.
    world
        "open": reasons are known facts and recognised triples; "closed": reasons are known facts only.
    seed
        Random seed.
    options
        Other options of the configuration, for example ``folds=5``. ``cogstage train --options`` lists them.

    Examples
    --------
    >>> graph, data = cs.Graph.load("graph"), cs.Dataset.load("data")
    >>> model = cs.CogStage("may_treat", dimension=8, recognition_passes=1, folds=0)
    >>> model.fit(graph, data).relations
    ('may_treat',)
    >>> 0 <= model.predict("Drug number 4", "Disorder number 5").probability <= 1
    True
    """

    def __init__(
        self,
        relation: str | Sequence[str] = "all",
        *,
        world: str = "open",
        preset: str = "default",
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.relation, self.preset, self.seed = relation, preset, seed
        self.config = preset_config(preset).replace(world=world, **options)

    # Parameters, as in scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters with their values; ``sklearn.base.clone`` makes an unfitted copy of them.

        Parameters
        ----------
        deep
            Without effect: no parameter has parameters of its own.

        Returns
        -------
        dict
            The arguments that create an equal model.
        """
        options = {entry.name: getattr(self.config, entry.name) for entry in dataclasses.fields(self.config)}
        return {**{name: getattr(self, name) for name in OWN_PARAMETERS}, **options}

    def set_params(self, **parameters: Any) -> CogStage:
        """Change parameters; they count from the next :meth:`fit`.

        Parameters
        ----------
        parameters
            Names and values, as in :meth:`get_params`. Another preset starts from that preset's options.

        Returns
        -------
        CogStage
            The model itself.
        """
        own = {name: parameters.pop(name) for name in OWN_PARAMETERS if name in parameters}
        preset = own.get("preset", self.preset)
        config = self.config if preset == self.preset else preset_config(preset)
        self.config = config.replace(**parameters)
        for name, value in own.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = CogStage(preset=self.preset).get_params()
        given = {name: value for name, value in self.get_params().items() if value != defaults[name]}
        given = {**given, **({} if self.preset == "default" else {"preset": self.preset})}
        return f"CogStage({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def __getstate__(self) -> dict[str, Any]:
        if self._fitted is not None:
            raise UsageError("a trained model is not pickled, since loading a pickle runs code; use save() and load()")
        return self.__dict__

    def _repr_html_(self) -> str:
        """Relations, sizes, privacy and figures, for notebooks."""
        rows = [(name, str(value)) for name, value in self.get_params().items() if name in (*OWN_PARAMETERS, "world")]
        if self._fitted is None:
            return Table("CogStage, not fitted", ("parameter", "value"), tuple(rows)).html()
        rows += [
            ("relations", ", ".join(self.relations)),
            ("terms", f"{len(self.vocabulary):,}"),
            ("training facts", f"{len(self.fitted.facts.head):,}"),
            ("privacy of the counts", self.privacy),
        ]
        return Table("CogStage, trained", ("", ""), tuple(rows)).html()

    # Fitting

    def fit(
        self,
        graph: Graph,
        data: FittingView | Dataset,
        *,
        progress: Progress | None = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 30.0,
        resume: bool = False,
        time_limit: float | None = None,
        trace: Path | str | None = None,
        tensorboard: Path | str | None = None,
    ) -> CogStage:
        """Train the model.

        Parameters
        ----------
        graph
            The co-occurrence graph.
        data
            A data set built on the graph, or its fitting view. Only the fitting view is used.
        progress
            Receiver of progress reports; by default, they are shown in a terminal or notebook.
        checkpoint, checkpoint_every, resume
            Checkpoint folder, seconds between checkpoints, and whether to continue from the last one.
        time_limit
            Number of seconds after which training stops.
        trace, tensorboard
            File for the training history (one JSON line per round), and folder for TensorBoard event files.

        Returns
        -------
        CogStage
            The model itself. Under ``torchrun``, all processes train it together.
        """
        from cogstage.training.fitting import FitOptions, train

        view = data.for_fitting() if isinstance(data, Dataset) else data
        progress = default_progress() if progress is None else progress
        options = FitOptions(progress, checkpoint, checkpoint_every, resume, time_limit, trace, tensorboard)
        targets = self._targets(view)
        trained = train(graph, view, targets, self.config, self.seed, options)
        self._use(
            Fitted(
                preset=self.preset,
                seed=self.seed,
                config=self.config,
                relations=tuple(view.relations),
                targets=tuple(targets),
                network=trained.network,
                calibration=dict(trained.calibration),
                metrics={**trained.metrics, "sources": dict(view.sources)},
                facts=view.train_facts(),
                **graph_fields(graph),
            )
        )
        return self

    def _targets(self, view: FittingView) -> list[int]:
        asked = view.relations if self.relation == "all" else self.relation
        names = [asked] if isinstance(asked, str) else list(asked)
        for name in names:
            if name not in view.relations:
                raise UsageError(f"the data set has no relation {name}; it has {', '.join(view.relations)}")
        return [view.relations.index(name) for name in dict.fromkeys(names)]

    def score(self, data: Dataset, split: SplitName = "dev") -> float:
        """Return how well the model tells facts from negatives: the AUROC, averaged over relations.

        Parameters
        ----------
        data
            A data set built on the graph of the model.
        split
            The pairs to score on. :func:`cogstage.evaluate` has all figures, with intervals.

        Returns
        -------
        float
            Between 0 and 1; 0.5 is chance.
        """
        check_choice("split", split, SplitName)
        data.check_fits(self.vocabulary)
        values = []
        for relation in self.relations:
            pairs = data.pairs(relation, split)
            value = auroc(pairs.label, self.logits(pairs.head, pairs.tail, relation)) if len(pairs) else None
            values += [] if value is None else [value]
        if not values:
            raise UsageError(f"the data set has no {split} pairs of {', '.join(self.relations)}")
        return float(np.mean(values))

    def on_graph(self, graph: Graph) -> CogStage:
        """Return a copy that uses the terms and counts of another graph; recognition and decision stay as trained.

        Terms are matched by their keys. A term that was not in the training graph gets its vector from the terms it
        co-occurs with. Training facts between terms that are missing from the other graph are dropped.

        Parameters
        ----------
        graph
            The other graph; its terms must have the same kind of keys.

        Returns
        -------
        CogStage
            A model of the default preset for the terms of ``graph``.
        """
        copy = CogStage(**self.get_params())
        copy._use(self.fitted.on_graph(graph))
        return copy

    # On disk

    def save(self, path: Path | str) -> None:
        """Write the model folder with a release report.

        Parameters
        ----------
        path
            Folder to write. An existing model is replaced; any other folder is refused.
        """
        self.__dict__.pop("predictor", None)  # it holds as much memory again; the next prediction makes it anew
        self.fitted.save(Path(path))

    @classmethod
    def load(cls, path: Path | str) -> CogStage:
        """Read a model folder and check its files against their hashes.

        Parameters
        ----------
        path
            Folder written by :meth:`save` or ``cogstage train``.

        Returns
        -------
        CogStage
            The trained model.

        Raises
        ------
        UsageError
            If ``path`` is not a finished model folder.
        CogstageError
            If a file is missing or damaged, or an older version wrote the folder.
        """
        fitted = Fitted.load(Path(path))
        names = [fitted.relations[target] for target in fitted.targets]
        model = cls(names, preset=fitted.preset, seed=fitted.seed, **fitted.config.to_dict())
        model._use(fitted)
        return model
