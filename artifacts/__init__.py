"""Certified stages: the record of what is proved, the file format, and the catalogue."""

from trilift.artifacts.artifact import Artifact, Provenance, load, save
from trilift.artifacts.canonical import canonical_bytes, digest
from trilift.artifacts.certificate import Certificate
from trilift.artifacts.listing import Entry, catalogue, find, load_stage, user_directory

__all__ = [
    "Artifact",
    "Certificate",
    "Entry",
    "Provenance",
    "canonical_bytes",
    "catalogue",
    "digest",
    "find",
    "load",
    "load_stage",
    "save",
    "user_directory",
]
