"""How many hostile cases there are."""

from hostile import test_arguments, test_files, test_options, test_sizes


def test_there_are_enough_cases():
    counts = [each.number_of_cases() for each in (test_arguments, test_files, test_options, test_sizes)]
    assert sum(counts) >= 1000 and min(counts) >= 200, counts
