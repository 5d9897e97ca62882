# Calls every method of an openapi-generator client that requires only names, and prints how many there are.
import inspect
import sys

import client

called = 0
for name, api in inspect.getmembers(client, inspect.isclass):
    if not name.endswith("Api"):
        continue
    service = api(client.ApiClient(client.Configuration(host=sys.argv[1])))
    for method_name, method in inspect.getmembers(service, inspect.ismethod):
        if method_name.startswith("_") or method_name.endswith(("_with_http_info", "_without_preload_content")):
            continue
        # These clients cannot write message streams.
        if method_name in ("listen", "write"):
            continue
        required = [each for each in inspect.signature(method).parameters.values() if each.default is each.empty]
        if all(getattr(each.annotation, "__origin__", None) is str for each in required):
            method(*["x" for _ in required], _headers={"accept": "application/json"})
            called += 1
print(called)
