"""trilift."""
