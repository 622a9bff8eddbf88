"""Trained models in use. Each file has functions of a `System`; those of candidates and metrics need no torch."""
