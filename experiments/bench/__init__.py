"""Peers side by side: error and speed of other packages by their own code, and what theory says of them."""
