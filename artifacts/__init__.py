"""Certified stages: the record of what is proved, the file format, and the catalogue."""

from trilift.artifacts.artifact import Artifact, Provenance, load, save
from trilift.artifacts.canonical import canonical_bytes, digest
from trilift.artifacts.certificate import Certificate
from trilift.artifacts.l2_artifact import (
    L2Artifact,
    L2Entry,
    catalogue_l2,
    find_l2,
    load_l2,
    load_stage_l2,
    save_l2,
)
from trilift.artifacts.l2_certificate import L2Certificate
from trilift.artifacts.listing import Entry, catalogue, find, load_stage, user_directory

__all__ = [
    "Artifact",
    "Certificate",
    "Entry",
    "L2Artifact",
    "L2Certificate",
    "L2Entry",
    "Provenance",
    "canonical_bytes",
    "catalogue",
    "catalogue_l2",
    "digest",
    "find",
    "find_l2",
    "load",
    "load_l2",
    "load_stage",
    "load_stage_l2",
    "save",
    "save_l2",
    "user_directory",
]
