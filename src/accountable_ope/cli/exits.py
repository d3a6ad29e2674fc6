"""Exit codes of the command line."""

BROKEN_PIPE, BAD_INPUT, VACUOUS, INCONSISTENT, INTERRUPTED = 1, 2, 3, 4, 130
