"""Suites that nobody here wrote: their vectors, and our answers to them."""
