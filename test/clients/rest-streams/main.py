"""Reads a stream of answers line by line, or sends its input as the body of a request, with http.client alone."""

import http.client
import sys
from urllib.parse import urlsplit


def main() -> None:
    what, url = sys.argv[1:]
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    if what == "watch":
        connection.request("GET", parts.path)
    else:
        header = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
        lines = iter(sys.stdin.buffer.readline, b"")
        connection.request("POST", parts.path, lines, header, encode_chunked=True)
    for line in connection.getresponse():
        print(line.decode().rstrip(), flush=True)


main()
