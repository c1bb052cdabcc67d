"""Independent answers for the rows of the numerics checklist."""
