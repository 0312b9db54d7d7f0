"""The stores that the study's tests run on."""

from study_stores import database_url, make_study, postgres_server

__all__ = ["database_url", "make_study", "postgres_server"]
