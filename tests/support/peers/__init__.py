"""Other runtimes on the same numbers, and names for every way in which they differ from us."""
