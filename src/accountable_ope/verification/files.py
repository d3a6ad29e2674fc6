"""Certificate files: versioned JSON, written atomically and read strictly."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..arguments import checked
from ..errors import InvalidFile, InvalidInput
from ..io.files import whole_file
from .codec import from_json, schema_of, to_json
from .record import FORMAT, VERSION, Record

SCHEMA = "certificate.schema.json"


@checked
def save_record(path: str | os.PathLike[str], record: Record) -> None:
    """Write a certificate, atomically.

    Parameters
    ----------
    path : str or path
        A file that ends in .json.
    record : Record

    Raises
    ------
    InvalidInput
        Where the file has another ending, or cannot be written.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope, tempfile
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aope.verification.save_record(f"{folder}/certificate.json", interval.record())
    ...     aope.verification.load_record(f"{folder}/certificate.json").data.rows
    500
    """
    target = Path(path)
    if target.suffix != ".json":
        raise InvalidInput(f"`path` of a certificate must end in .json. Got {os.fspath(path)!r}.")
    with whole_file(target) as partial:
        partial.write_text(json.dumps(to_json(record), indent=1, allow_nan=False) + "\n", encoding="utf-8")


@checked
def load_record(path: str | os.PathLike[str]) -> Record:
    """Read a certificate; nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Record

    Raises
    ------
    InvalidFile
        Where the file is not a certificate of this version.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope, tempfile
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=10)
    >>> facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=1.5 * mdp.norm, reward_noise=False)
    >>> problem = aope.Problem(data, mdp.starts, mdp.policy, facts)
    >>> interval = aope.bound_value(problem, features=mdp.features(), kernel=aope.Gaussian(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aope.verification.save_record(f"{folder}/certificate.json", interval.record())
    ...     aope.verification.load_record(f"{folder}/certificate.json").data.rows
    500
    """
    name = os.fspath(path)
    try:
        document: Any = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_unique)
    except OSError as error:
        raise InvalidFile(f"{name} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{name} is not a certificate: it is not JSON, or has an entry twice.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidFile(f"{name} is not a certificate: its `format` is not {FORMAT!r}.")
    if document.get("version") != VERSION:
        given = document.get("version")
        raise InvalidFile(f"{name} is a certificate of version {given!r}; this program reads version {VERSION}.")
    try:
        record: Record = from_json(Record, document)
    except InvalidInput as error:  # an entry that is missing or wrong, or an assumption out of range
        raise InvalidFile(f"{name}: {error}") from error
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose entries have one meaning, whoever reads it."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an entry is there twice")
    return dict(pairs)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a certificate, as published with the package."""
    published: dict[str, Any] = json.loads((files("accountable_ope.data") / SCHEMA).read_text(encoding="utf-8"))
    return published


def derived_schema() -> dict[str, Any]:
    """The same, from the records themselves."""
    return {"title": FORMAT, "$comment": f"version {VERSION}", **schema_of(Record)}
