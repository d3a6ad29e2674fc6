"""`python -m accountable_ope` is `aope`."""

from .cli import main

main()
