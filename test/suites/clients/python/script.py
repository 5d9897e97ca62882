"""Does what the standard input asks for, and prints what came of it."""

import sys
from collections.abc import Callable
from pathlib import Path

import load

AUTHORITY = sys.argv[1]
# The authority's certificate file, for TLS.
TRUSTED = Path(sys.argv[2]) if len(sys.argv) > 2 else None
URL = f"{'http' if TRUSTED is None else 'https'}://{AUTHORITY}"


def run(
    delete: Callable[[int, dict[str, str], float | None], tuple[int, str]],
    streams: dict[str, Callable[[int], None]] | None = None,
) -> None:
    """Calls delete with an id, headers and seconds for each line; it returns the number of a gRPC code and a message.

    A line may ask for a load instead: of such calls, or of one of the streams, which takes the number of its pieces.
    """
    for line in sys.stdin:
        what, token, amount = line.split()
        headers = {} if token == "-" else {"authorization": f"Bearer {token}"}
        if what == "load":
            load.call_for(int(amount), lambda plant: delete(plant, headers, None))
        elif streams is not None and what in streams:
            streams[what](int(amount))
        else:
            code, message = delete(int(what), headers, None if amount == "-" else int(amount) / 1000)
            print(f"{code} {message}".strip(), flush=True)
