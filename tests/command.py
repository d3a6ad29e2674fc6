"""The command line in a process of its own."""

import subprocess
import sys


def aope_command(*arguments, cwd=None):
    code = "from accountable_ope.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120, check=False
    )
