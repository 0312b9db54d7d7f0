"""German and Spanish rules on sentences whose answer is plain to a reader; headings, list items, what was left out."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from corpus_files import put
from typer.testing import CliRunner

from cogstage.cli.graph import app
from cogstage.corpus.annotate import Annotator
from cogstage.corpus.context import Context, rules_named
from cogstage.corpus.language import language_of
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows


def cases(language: str) -> list[tuple[str, list[str]]]:
    path = Path(__file__).with_name(f"context_cases_{language}.tsv")
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(row["sentence"], row["answers"].split(";")) for row in rows]


@pytest.mark.parametrize("language", ["de", "es", "fr", "it"])
def test_every_sentence_is_judged_as_a_reader_would(language: str) -> None:
    sentences = cases(language)
    assert len(sentences) >= 60
    terms = {term.lower() for sentence, _ in sentences for term in re.findall(r"\[([^]]+)\]", sentence)}
    annotator = Annotator(Lexicon.build(Entry(term) for term in sorted(terms)), rules=rules_named(language))
    wrong = []
    for sentence, answers in sentences:
        mentions = annotator.annotate(re.sub(r"[\[\]]", "", sentence))
        given = [",".join(f.name.lower() for f in Context if m.context & f) or "plain" for m in mentions]  # type: ignore[union-attr]
        if given != answers:
            wrong.append((sentence, answers, given))
    assert wrong == []


def test_rules_by_name_or_file(tmp_path: Path) -> None:
    assert rules_named(None) is rules_named("en") is None
    mine = rules_named(str(put(tmp_path / "mine.tsv", "cue\tcategory\tdirection\treach\nbla\tnegated\tforward\t\n")))
    assert mine is not None
    assert mine.phrases == (("bla",),)
    with pytest.raises(UsageError, match="neither a file nor one of the languages en, de, es, fr, it"):
        rules_named("klingon")


TERMS = ["fever", "cough", "rash", "aspirin", "diabetes", "pneumonia", "chest pain"]


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("No fever\nmedications: aspirin", ["aspirin"]),
        ("no fever ASSESSMENT: pneumonia", ["pneumonia"]),
        ("Family history: diabetes Plan: aspirin", ["aspirin"]),
        ("1. no fever 2. cough 3. rash", ["cough", "rash"]),
        ("1) no fever 2) cough", ["cough"]),
        ("denies fever\n- cough\n- rash", ["cough", "rash"]),
        ("denies fever\n2) cough", ["cough"]),
        ("no fever • cough", ["cough"]),
        ("denied\nany of the following: fever, cough", []),
        ("Grade 2. no fever, cough", []),
        ("No fever,\nchest pain or rash", []),
        ("without\ncough: dry or rash", []),
    ],
)
def test_a_scope_ends_at_headings_and_items(text: str, counted: list[str]) -> None:
    annotator = Annotator(Lexicon.build(Entry(term) for term in TERMS))
    rows = annotator.term_rows([text])[2]
    assert [annotator.lexicon.terms[term] for term in rows.tolist()] == counted


def test_a_heading_in_wrapped_text_begins_a_sentence() -> None:
    lines = ["The patient came to the clinic today and said he has had no"] * 4
    text = "\n".join([*lines, "Medications: aspirin twice a day with food and some water"])
    annotator = Annotator(Lexicon.build(Entry(term) for term in TERMS))
    assert [m.negated for m in annotator.annotate(text)] == [False]


def test_the_build_says_what_context_left_out(tmp_path: Path) -> None:
    texts = [
        "No fever, cough.",
        "Mother had diabetes. He has a rash, on aspirin.",
        "Rule out pneumonia. History of rash.",
    ]
    notes = put(tmp_path / "n.tsv", "doc_id\ttext\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(texts)))
    lexicon = put(tmp_path / "l.tsv", "term\n" + "\n".join(TERMS) + "\n")
    bad = BadRows()
    build_graph(notes, tmp_path / "graph", lexicon, bad=bad)
    left_out = {what.split()[4].rstrip(","): count for what, count in bad.notices.items() if "left out as" in what}
    assert left_out == {"negated": 2, "family": 1, "hypothetical": 1, "historical": 1}
    build_graph(notes, tmp_path / "graph", lexicon, BuildOptions(keep_context=True), bad=(bad := BadRows()))
    assert not bad.notices


def test_examples_of_what_is_left_out(tmp_path: Path) -> None:
    texts = ["No fever, no cough, no rash.", "Mother had diabetes.", "He has a rash.", "History of rash."]
    notes = put(tmp_path / "n.tsv", "doc_id\ttext\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(texts)))
    lexicon = put(tmp_path / "l.tsv", "term\n" + "\n".join(TERMS) + "\n")
    arguments = ["context", str(notes), "--lexicon", str(lexicon), "--examples", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    shown = [line.split("  (")[0] for line in result.stdout.splitlines()]
    assert shown == [
        "family: Mother had [diabetes] .",
        "historical: History of [rash] .",
        "negated: No [fever] , no cough, no rash.",
        "negated: No fever, no [cough] , no rash.",
    ]
    listed = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert Counter(example["category"] for example in listed) == {"negated": 2, "family": 1, "historical": 1}


def test_a_build_with_german_rules(tmp_path: Path) -> None:
    notes = put(tmp_path / "n.tsv", "doc_id\ttext\n1\tKein Fieber, aber Husten und Schnupfen.\n")
    lexicon = put(tmp_path / "l.tsv", "term\nFieber\nHusten\nSchnupfen\n")
    build_graph(notes, tmp_path / "graph", lexicon, BuildOptions(context_rules="de"))
    assert Graph.load(tmp_path / "graph").vocabulary.term == ("husten", "schnupfen")


TEXTS = {
    "English": "The patient was seen in the clinic and has no fever; she is on aspirin for the pain.",
    "German": "Die Patientin wurde in der Klinik gesehen und hat kein Fieber, sie ist mit dem Auto gekommen.",
    "Spanish": "La paciente no presenta fiebre ni tos y fue vista en la consulta por el dolor de su pierna.",
    "French": "La patiente ne présente pas de fièvre et elle est vue dans le service pour une toux sur une année.",
    "Italian": "La paziente non ha febbre ed è stata vista nella clinica per il dolore della gamba con una tosse.",
    "Portuguese": "O paciente não apresenta febre e foi visto na consulta com uma dor no braço esquerdo, sem tosse.",
    "Chinese or Japanese": "患者没有发热，但有咳嗽和头痛。患者过去有糖尿病和高血压病史。",
    "Cyrillic": "Пациент жалуется на головную боль и кашель.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_recognised(language: str) -> None:
    assert language_of(TEXTS[language]) == language


@pytest.mark.parametrize("text", ["", "aspirin 81 mg", "BP 120/80 HR 70", "μg α-helix"])
def test_short_texts_are_of_no_language(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize(
    ("rules", "said"), [(None, "set `context_rules` to es"), ("es", None), ("fr", "by French rules")]
)
def test_a_build_says_where_rules_do_not_fit_the_language(tmp_path: Path, rules: str | None, said: str | None) -> None:
    rows = [f'{n},"{TEXTS["Spanish"]}"' for n in range(3)]
    put(tmp_path / "n.csv", "\n".join(["doc_id,text", *rows]))
    put(tmp_path / "l.csv", "term\npierna\ndolor\nconsulta\n")
    bad = BadRows()
    build_graph(tmp_path / "n.csv", tmp_path / "g", tmp_path / "l.csv", BuildOptions(context_rules=rules), bad=bad)
    lines = [line for line in bad.summary() if "look Spanish" in line]
    assert len(lines) == (said is not None)
    assert said is None or said in lines[0]


def test_terms_are_found_in_text_without_spaces() -> None:
    """The longest terms decide, as in forward maximum matching; sentences end at the marks of the script."""
    annotator = Annotator(Lexicon.build(map(Entry, ["糖尿病", "糖尿", "高血压", "头痛", "COVID-19", "เบาหวาน"])))
    text = "患者有糖尿病史及高血压。头痛3天！COVID-19阳性。ผู้ป่วยเบาหวาน"
    mentions = annotator.annotate(text)
    assert [text[m.start : m.end] for m in mentions] == ["糖尿病", "高血压", "头痛", "COVID-19", "เบาหวาน"]
    assert [m.sentence for m in mentions] == [0, 0, 1, 2, 3]
