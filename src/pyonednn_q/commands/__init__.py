"""The command line: one file a subcommand, one table of options; nothing else parses or prints.

A subcommand is a module that is imported when it is asked for. Its docstring is its help; `run`
takes what was parsed, prints, and returns the exit code.
"""

from __future__ import annotations
