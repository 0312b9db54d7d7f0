"""The command line of the study, as an administrator uses it."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from study_material import prediction, write_sources

from cogstage.cli.main import run
from cogstage.data import embedded
from cogstage.errors import UsageError
from cogstage.knowledge.build import build_dataset
from cogstage.study.folder import open_folder
from cogstage.study.protocol import Study
from cogstage.study.sources import labels_of_dataset, read_source


def cogstage(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def create(capsys: pytest.CaptureFixture[str], folder: Path, *more: object) -> dict[str, object]:
    first, second = write_sources(folder)
    sources = ("-s", f"open={first}", "-s", f"closed={second}")
    code, out, err = cogstage(capsys, "study", "create", *sources, "-o", folder / "study", "--json", *more)
    assert code == 0, err
    made: dict[str, object] = json.loads(out)
    return made


def test_create_invite_password_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = create(capsys, tmp_path, "--seed", 4)
    study = tmp_path / "study"
    assert made["cases"] == 30
    assert study.stat().st_mode & 0o077 == 0
    opened = open_folder(study)
    assert opened.administrators.is_password(str(made["administrator_password"]))

    code, out, _ = cogstage(capsys, "study", "invite", study, "Dr A", "Dr B", "--url", "https://s.example.org/")
    assert code == 0
    links = dict(line.split("\t") for line in out.splitlines())
    assert list(links) == ["Dr A", "Dr B"]
    ticket = links["Dr A"].removeprefix("https://s.example.org/join/")
    found = opened.access.reviewer_with_link(ticket)
    assert found is not None
    assert found.name == "Dr A"

    code, out, _ = cogstage(capsys, "study", "admin-password", study, "--generate")
    assert opened.administrators.is_password(out.split(": ")[1].strip())
    code, out, _ = cogstage(capsys, "study", "report", study, "-o", tmp_path / "report", "--draws", 10, "--json")
    assert code == 0
    assert json.loads(out)["sources"] == ["open", "closed"]
    code, out, err = cogstage(capsys, "study", "invite", study, "Dr C")
    assert code == 2
    assert "--url" in err
    assert [person.name for person in opened.access.reviewers()] == ["Dr A", "Dr B"]
    for command, closed in (("close", True), ("reopen", False)):
        assert cogstage(capsys, "study", command, study)[0] == 0
        assert (opened.answers.closed_at is not None) == closed
    code, out, _ = cogstage(capsys, "study", "upgrade", study)
    assert code == 0
    opened.close()


def test_password_from_standard_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create(capsys, tmp_path)
    code = "from cogstage.cli.main import run; run()"
    command = [sys.executable, "-c", code, "study", "admin-password", str(tmp_path / "study")]
    done = subprocess.run(command, input="a long password\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "a long password" not in done.stdout
    opened = open_folder(tmp_path / "study")
    assert opened.administrators.is_password("a long password")
    opened.close()
    done = subprocess.run(command, input="short\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert "at least 10" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["report", "nowhere", "-o", "out"], "not a folder"),
        (["serve", "nowhere"], "not a folder"),
        (["serve", "nowhere", "--tls-cert", "x"], "--tls-key"),
        (["serve", "nowhere", "--url", "example.org/study"], "--url"),
        (["create", "-s", "open=x.jsonl", "-o", "out"], "at least two sources"),
        (["create", "-s", "a", "-s", "b=y", "-o", "out"], "NAME=PATH"),
        (["create", "-s", "a=x.jsonl", "-s", "a=y.jsonl", "-o", "out"], "same name"),
        (["create", "-s", "a b=x.jsonl", "-s", "c=y.jsonl", "-o", "out"], "source name"),
        (["create", "-s", "a=x.jsonl", "-s", "b=y.jsonl", "-o", "out"], "no such file"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = cogstage(capsys, "study", *arguments)
    assert code == 2
    assert out == ""
    assert word in err.strip().splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_taken_port_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    create(capsys, tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = cogstage(capsys, "study", "serve", tmp_path / "study", "--port", taken.getsockname()[1])
    assert code == 2
    assert "choose another --port" in err


def test_models_are_asked_about_the_data_sets_test_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model folder as a source: its answers are the records of the pairs that the data set labels."""
    from cogstage.estimator import CogStage

    graph = embedded.graph()
    data = build_dataset(graph, embedded.facts(), tmp_path / "data", relations=("may_treat",))
    labels = labels_of_dataset(tmp_path / "data", "may_treat")
    test = data.pairs("may_treat", "test")
    assert len(labels) == len(test)
    assert sum(labels.values()) == int(test.label.sum())
    with pytest.raises(UsageError, match="no relation"):
        labels_of_dataset(tmp_path / "data", "symptom_of")

    def load(path: Path) -> SimpleNamespace:
        def predict_batch(heads: list[int], tails: list[int], relation: str, k: int) -> list[object]:
            names = graph.vocabulary.term
            pairs = zip(heads, tails, strict=True)
            return [prediction(names[h], names[t], 0.9, path.name, k) for h, t in pairs]

        return SimpleNamespace(vocabulary=graph.vocabulary, relations=("may_treat",), predict_batch=predict_batch)

    monkeypatch.setattr(CogStage, "load", staticmethod(load))
    for world in ("open", "closed"):
        (tmp_path / world).mkdir()
        (tmp_path / world / "meta.json").write_text(json.dumps({"kind": "model", "format": 1}))
    source = read_source("open", tmp_path / "open", labels, 5)
    assert source.predictions.keys() == labels.keys()
    with pytest.raises(UsageError, match="`dataset`"):
        read_source("open", tmp_path / "open", {}, 5)
    sources = ("-s", f"open={tmp_path / 'open'}", "-s", f"closed={tmp_path / 'closed'}")
    more = ("--dataset", tmp_path / "data", "--relation", "may_treat", "--cases", 7, "--false-positives", 3)
    code, _, err = cogstage(capsys, "study", "create", *sources, *more, "-o", tmp_path / "study")
    assert code == 0, err
    study = Study.load(tmp_path / "study")
    assert sorted(case.label for case in study.cases) == [0] * 3 + [1] * 7
    for case in study.cases:
        assert labels[case.head, case.relation, case.tail] == case.label
