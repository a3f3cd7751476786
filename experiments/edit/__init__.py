"""The experiments on edit-neighbouring streams: simulated mechanisms, an attack, tables and pictures."""
