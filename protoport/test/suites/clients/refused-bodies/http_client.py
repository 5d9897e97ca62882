"""Sends a body with Python's http.client for each line "method url content-type bytes", and prints the status."""

import http.client
import sys
from urllib.parse import urlsplit

for line in sys.stdin:
    method, url, content_type, size = line.split()
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    try:
        connection.request(method, parts.path, b" " * int(size), {"Content-Type": content_type})
        print(connection.getresponse().status)
    except OSError as error:
        print(error)
    finally:
        connection.close()
