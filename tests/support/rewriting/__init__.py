"""What the tests of the rewriter stand on: exact meaning, near-match windows, wrong variants."""
