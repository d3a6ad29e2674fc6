"""Exit codes of the command line."""

NO_OUTPUT, BAD_INPUT, VACUOUS, INCONSISTENT, NOT_PROVED, INTERRUPTED = 1, 2, 3, 4, 5, 130
DOUBTED = 5
"""The class or its norm bound is doubted, or rows are copies: a script must not take the interval for one that is not."""

SUPPORTED, REFUTED, UNDECIDED, NO_DECISION = 0, 3, 4, 5
"""Where a claim was to be decided (--threshold, --better-than-logged); 5: something that it rests on is doubted, or refuted."""
