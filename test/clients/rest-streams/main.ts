/** Reads a stream of answers line by line, or sends its input as the body of a request, with fetch alone. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";

const [what, url = ""] = process.argv.slice(2);

function ask(): Promise<Response> {
  if (what === "watch") return fetch(url);
  const headers = { "content-type": "application/x-ndjson" };
  return fetch(url, { method: "POST", headers, body: Readable.toWeb(process.stdin), duplex: "half" });
}

const { body } = await ask();
if (body !== null) for await (const line of createInterface({ input: Readable.fromWeb(body) })) console.log(line);
