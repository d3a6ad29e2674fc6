"""Names of columns of the states and of actions, as text in the metadata of a Parquet file."""

from __future__ import annotations

import json
from typing import Any

from ..errors import InvalidFile, InvalidInput
from ..problem.naming import Categories, Naming

NAMING = "accountable_ope.naming"
"""In the metadata of a file: what columns of the states and actions are called, as JSON."""


def written_naming(naming: Naming) -> str:
    """As JSON."""
    words = [{"name": each.name, "first": each.first, "words": list(each.words)} for each in naming.categories]
    return json.dumps({"states": list(naming.states), "actions": list(naming.actions), "categories": words})


def read_naming(text: bytes, file: str) -> Naming:
    """From JSON.

    Raises
    ------
    InvalidFile
        Where it is none, or holds no names.
    """
    try:
        found: Any = json.loads(text)
        words = tuple(Categories(each["name"], each["first"], tuple(each["words"])) for each in found.get("categories", ()))
        return Naming(tuple(found.get("states", ())), tuple(found.get("actions", ())), words)
    except (InvalidInput, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidFile(f"{file} has names of columns in its metadata that cannot be read: {error}.") from error
