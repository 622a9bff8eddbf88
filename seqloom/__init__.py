"""Seqloom: from a file of pairs to a trained, explained, reusable sequence-to-sequence model."""

__version__ = "0.1.0"
