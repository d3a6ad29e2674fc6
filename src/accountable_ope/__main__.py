"""`python -m accountable_ope` is `aope`."""

from .cli import main

if __name__ == "__main__":
    main()
