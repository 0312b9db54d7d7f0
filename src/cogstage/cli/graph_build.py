"""``cogstage graph build``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.console import print_json, progress, say_skipped
from cogstage.cli.options import argument, count_option, input_option, privacy_option, run_option

EXAMPLE = (
    "Example: cogstage graph build notes.jsonl.gz --lexicon terms.tsv --unit patient-window --window 7d "
    "--per patient --suppress-below 11 --out graph"
)
DOCUMENTS = argument(..., help="Documents or coded records: files, folders or glob patterns.", metavar="FILE")
LEXICON = "Lexicon table (columns term, concept, name, type); may be repeated."


def build(
    documents: list[str] = DOCUMENTS,
    out: Path = options.out("Output folder; an existing graph is replaced."),
    lexicon: list[str] | None = options.lexicon(LEXICON),
    unit: choices.Unit = count_option(
        "auto",
        help="Unit within which terms co-occur; auto uses patient-window if most are coded records of patients.",
    ),
    window: choices.Window = options.WINDOW,
    per: choices.Per = options.PER,
    level: choices.Level = options.level("concept"),
    min_count: int = options.MIN_COUNT,
    suppress_below: int = privacy_option(
        0, help="Leave out terms and edges of fewer than N patients (or documents).", metavar="N"
    ),
    private: str | None = privacy_option(
        None,
        metavar="EPS,DELTA,M",
        help="Release with differential privacy, at most M pairs per patient; EPS,DELTA,M,laplace for Laplace noise.",
    ),
    pairs_per_patient: int | None = privacy_option(
        None, help="Count at most M pairs per patient exactly, for `graph release` and `federate`.", metavar="M"
    ),
    order: bool = count_option(False, "--order", help="Also count which of two terms came first in each patient."),
    lag: str = count_option(
        "90d", help="Longest time between two terms for --order, such as 90d; any means no limit.", metavar="DAYS"
    ),
    until: str | None = count_option(None, metavar="YEAR|DATE", help="Leave out documents after this year or day."),
    since: str | None = count_option(None, metavar="YEAR|DATE", help="Leave out records before this year or day."),
    ages: str | None = count_option(
        None, metavar="RANGE", help="Count only patients of these ages on the day of the record, such as 18-65 or 65-."
    ),
    sex: choices.Sex | None = count_option(None, help="Count only patients of this sex."),
    patients: Path | None = count_option(
        None, metavar="TABLE", help="Count only these patients (patient_id, optionally birth_date, birth_year, sex)."
    ),
    copies: choices.Copies = count_option(
        "auto",
        help="What to do with copied notes of a patient; auto drops them if there are notes of patients.",
    ),
    corpus: str | None = input_option(
        None, help="Description of the documents, for the explorer's About page.", metavar="TEXT"
    ),
    keep_examples: int = privacy_option(
        0,
        help="Keep up to N example documents per pair, with the sentences that mention it; not for protected counts.",
        metavar="N",
    ),
    examples_of_patients: bool = privacy_option(
        False,
        "--examples-of-patients",
        help="Allow --keep-examples for patient records; only if all users of the model may read them.",
    ),
    keep_context: bool = count_option(
        False, "--keep-context", help="Also count negated, family, hypothetical and historical mentions."
    ),
    content: choices.Content = count_option(
        "auto", help="What to count in a document; auto counts the text if there is a lexicon, otherwise the codes."
    ),
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    stop_list: Path | None = input_option(None, help="Terms of the lexicon to ignore, one per line.", metavar="FILE"),
    roll_up: str | None = count_option(
        None,
        metavar="LEVEL|TABLE",
        help="Replace codes by broader concepts: standard, ingredient, atc1 to atc5, snomed1 to snomed9, or a table.",
    ),
    vocabulary: Path | None = options.VOCABULARY,
    add_to: Path | None = input_option(
        None,
        help="Graph folder to extend; only new files are counted and added.",
        metavar="FOLDER",
    ),
    variants: bool = count_option(False, "--variants", help="Also match plural and hyphen variants of terms."),
    any_case: bool = count_option(False, "--any-case", help="Match abbreviations such as MS in any case."),
    context_rules: str | None = options.CONTEXT_RULES,
    format: str = options.FORMAT,
    column: list[str] | None = input_option(
        None,
        metavar="COLUMN=NAME",
        help="Name of a column in your table, such as text=note_text; may be repeated.",
    ),
    date_format: str | None = input_option(None, help="Date format in your table, such as %d/%m/%Y.", metavar="FORMAT"),
    ids_across_files: bool = input_option(
        False, "--ids-across-files", help="Treat equal doc_id values in different files as one document."
    ),
    reader_option: list[str] | None = input_option(
        None,
        metavar="NAME=VALUE",
        help="Option of the input format, such as tables=note,drug_exposure; may be repeated.",
    ),
    engine: choices.EngineName = run_option("local", help="Counting engine."),
    master: str = run_option("local[*]", help="Spark master, such as local[*] or spark://host:port.", metavar="URL"),
    memory: str = run_option(
        "4GB", help="Memory limit for counting; the rest is kept on disk next to --out.", metavar="SIZE"
    ),
    workers: int | None = options.workers(None, "Number of processes (default: one per core)."),
    resume: bool = options.resume("Continue an interrupted run; finished work is kept next to --out."),
    seed: int | None = options.seed(
        "Random seed, for the noise of --private; for tests only, never for a real release.", None
    ),
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json(),
) -> None:
    """Count co-occurrences in text or coded records, and write a graph folder."""
    from cogstage.corpus.readers import reader_options
    from cogstage.graph.build import build_folder
    from cogstage.graph.merge import add_documents
    from cogstage.graph.options import BuildOptions, PrivacyOptions, parse_lag, parse_size, parse_until, parse_window
    from cogstage.tables import BadRows

    cohort = {"since": since, "ages": ages, "sex": sex, "patients": patients}
    build_options = BuildOptions(
        unit=unit,
        window=parse_window(window),
        per=per,
        level=level,
        min_count=min_count,
        suppress_below=suppress_below,
        private=None if private is None else PrivacyOptions.parse(private),
        pairs_per_patient=pairs_per_patient,
        order=order,
        lag=parse_lag(lag),
        until=None if until is None else parse_until(until),
        copies=copies,
        corpus=corpus,
        keep_examples=keep_examples,
        examples_of_patients=examples_of_patients,
        keep_context=keep_context,
        content=content,
        ambiguity=ambiguity,
        variants=variants,
        any_case=any_case,
        context_rules=context_rules,
        format=format,
        reader=reader_options(
            [
                *(reader_option or ()),
                *([f"columns={','.join(column)}"] if column else ()),
                *([f"date_format={date_format}"] if date_format else ()),
                *(["ids_across_files=true"] if ids_across_files else ()),
                *(f"{name}={value}" for name, value in cohort.items() if value is not None),
            ],
            format,
        ),
        licences=tuple(licence),
    )
    bad = BadRows(skip)
    how: dict[str, Any] = {
        "stop_list": stop_list if stop_list is not None else (),
        "roll_up": roll_up,
        "vocabulary": vocabulary,
        "engine": engine,
        "master": master,
        "memory": parse_size(memory),
        "workers": workers,
        "resume": resume,
        "seed": seed,
        "bad": bad,
        "progress": progress(),
    }
    if add_to is None:
        built = build_folder(documents, out, lexicon or None, build_options, **how)
    else:
        built = add_documents(add_to, documents, out, lexicon or None, build_options, **how)
    say_skipped(bad)
    if as_json:
        result = {"nodes": built.nodes, "edges": built.edges, "skipped": built.skipped, "out": str(out)}
        print_json(result if private else {**result, "documents": built.documents, "units": built.units})
    else:
        typer.echo(f"{out}: {built.nodes:,} nodes, {built.edges:,} edges")
