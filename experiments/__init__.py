"""Experiments: real data, the tables and figures of the papers, and peers side by side."""
