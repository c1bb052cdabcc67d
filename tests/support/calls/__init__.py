"""Calls of operators as plain values, and what each must return, in float64."""
