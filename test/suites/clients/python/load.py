"""Puts load on a server, and prints what came of it."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

# Concurrent calls.
CALLERS = 64

# The content that each sent piece has.
CONTENT = bytes(64 * 1024)

Outcome = tuple[int, str]


def call_for(seconds: int, delete: Callable[[int], Outcome]) -> None:
    """Deletes plants 1, 2, 3 … for some seconds, and prints how often which outcome was told; "#" stands for the plant."""
    counts: Counter[str] = Counter()
    lock = threading.Lock()
    ids = itertools.count(1)

    def call() -> None:
        with lock:
            plant = next(ids)
        code, message = delete(plant)
        with lock:
            counts[f"{code} {message.replace(str(plant), '#', 1)}".strip()] += 1

    def caller() -> None:
        while time.monotonic() < until:
            call()

    # Without an open connection, some clients would open one for each call.
    call()
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(CALLERS) as callers:
        for running in [callers.submit(caller) for _ in range(CALLERS)]:
            running.result()
    print_counts(counts)


def read(pieces: Iterable, outcome_of: Callable[[Exception], Outcome]) -> None:
    """Reads a stream, and prints how many pieces of which size came, and how it ended."""
    counts: Counter[str] = Counter()
    code, message = 0, ""
    try:
        for wanted, piece in enumerate(pieces):
            in_order = piece.number == wanted
            counts[f"{len(piece.content)} bytes" if in_order else f"number {piece.number} for {wanted}"] += 1
    except Exception as error:
        code, message = outcome_of(error)
    counts[f"{code} {message}".strip()] += 1
    print_counts(counts)


def print_counts(counts: Counter[str]) -> None:
    """Prints a line for each, and an empty one behind the last."""
    for seen, times in counts.items():
        print(times, seen)
    print(flush=True)
