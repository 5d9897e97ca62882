#!/bin/sh
# Sends a body with curl for each line "method url content-type bytes", and prints the status.
# Arguments are passed on to curl.
while read -r method url type bytes; do
  head -c "$bytes" /dev/zero |
    curl -sS -o /dev/null -w '%{http_code}\n' -X "$method" -H "Content-Type: $type" --data-binary @- "$@" "$url" 2>&1
done
