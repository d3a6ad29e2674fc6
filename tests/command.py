"""The command line: in this process, which is fast, or in a process of its own, which is what users start."""

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from accountable_ope.cli.application import run


def aope_command(*arguments, cwd=None):
    """Run a command here: its exit code and what it printed, as of a process with a terminal of 80 columns."""
    words, folder = [str(one) for one in arguments], Path(cwd or ".").absolute()
    out, err, modules = io.StringIO(), io.StringIO(), set(sys.modules)
    importlib.invalidate_caches()  # the folder may have got modules since it was last looked at
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder),
        patch.dict(os.environ, COLUMNS="80", NO_COLOR="1"),
        patch.object(sys, "path", [*sys.path]),
    ):
        code = run(words)
    for name in set(sys.modules) - modules if cwd else ():  # a policy of the same name in another folder is another module
        if (origin := getattr(sys.modules[name], "__file__", None)) and Path(origin).is_relative_to(folder):
            del sys.modules[name]
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def aope_process(*arguments, cwd=None):
    """Run a command in a process of its own."""
    code = "from accountable_ope.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120, check=False
    )


def heed_interrupts() -> None:
    """For a new process: where the tests run in the background of a shell, Ctrl-C is ignored, and it would ignore it too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
