"""Chains that other runtimes test, and what it takes to run a plan against their meaning."""
