"""What is asked before a suite, one small file a check: each is a pure function of `Facts`."""
