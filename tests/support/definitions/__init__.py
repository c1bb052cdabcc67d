"""What other frameworks define, computed without the package: the answers that it must give."""
