"""Neighbouring streams, sensitivity sets and reductions: tools to test mechanisms with."""
