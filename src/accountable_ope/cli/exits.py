"""Exit codes of the command line."""

NO_OUTPUT, BAD_INPUT, VACUOUS, INCONSISTENT, NOT_PROVED, INTERRUPTED = 1, 2, 3, 4, 5, 130
