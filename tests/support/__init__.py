"""What the tests stand on: the oracle, fills, cases, threads, ISA. No test lives here."""
