"""Calls with grpcio: `python grpcio.py PORT [retry]`. Prints the number of calls, and a line for each error."""

import random
import sys
import threading
import time
from collections import Counter

import grpc

CALLERS = 8

channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")
waits = sys.argv[2:] == ["retry"]
call = channel.unary_unary("/greenhouse.v1.GreenhouseService/GetReading")
ended = threading.Event()
lock = threading.Lock()
calls = 0
errors: Counter[str] = Counter()


def repeat() -> None:
    global calls
    while not ended.is_set():
        with lock:
            calls += 1
        try:
            call(b"", timeout=20, wait_for_ready=waits)
        except grpc.RpcError as error:
            with lock:
                errors[f"{error.code().name} {error.details()}"] += 1
        time.sleep(random.uniform(0, 0.01))


callers = [threading.Thread(target=repeat) for _ in range(CALLERS)]
for each in callers:
    each.start()
sys.stdin.read()
ended.set()
for each in callers:
    each.join()
print(calls)
for text, times in errors.items():
    print(times, text)
