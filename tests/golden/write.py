"""Write golden.json anew: python tests/golden/write.py. Only where other numbers are meant; name the reason."""

import json
from pathlib import Path

from cases import CASES

if __name__ == "__main__":
    found = {}
    for name, function in CASES.items():
        found[name] = [float(f"{x:.12g}") for x in function()]
        print(name, found[name][:2], flush=True)
    text = json.dumps(found, indent=0).replace("\n", "").replace('], "', '],\n"')
    (Path(__file__).parent / "golden.json").write_text(text + "\n")
