"""Runs calls that are read from the standard input, and prints what each came to."""

import sys
from collections.abc import Callable
from pathlib import Path

AUTHORITY = sys.argv[1]
# The file of the authority to trust, for TLS.
TRUSTED = Path(sys.argv[2]) if len(sys.argv) > 2 else None
URL = f"{'http' if TRUSTED is None else 'https'}://{AUTHORITY}"


def run(delete: Callable[[int, dict[str, str], float | None], tuple[int, str]]) -> None:
    """Calls delete with an id, headers and seconds for each line; it returns the number of a gRPC code and a message."""
    for line in sys.stdin:
        plant, token, deadline_ms = line.split()
        headers = {} if token == "-" else {"authorization": f"Bearer {token}"}
        code, message = delete(int(plant), headers, None if deadline_ms == "-" else int(deadline_ms) / 1000)
        print(f"{code} {message}".strip(), flush=True)
