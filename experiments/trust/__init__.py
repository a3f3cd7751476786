"""Trust: what was tried against trilift, how often it held, and the page docs/trust.md that says so."""
