"""Exit codes of the command line."""

NO_OUTPUT, BAD_INPUT, VACUOUS, INCONSISTENT, INTERRUPTED = 1, 2, 3, 4, 130
