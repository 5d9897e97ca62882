import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { createTestGateway } from "../../../../../testing/src/gateway/test-gateway.ts";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";

// `node protoport/gateway/test/suites/long/transcoding/serve.ts PORT own|mounted|fetch` serves the echo contract behind
// this project's gateway. Uses the gateway's own HTTP, node:http with a mounted handler, or node:http with a Fetch
// handler.

const [port, way] = process.argv.slice(2);
const address = { host: "127.0.0.1", port: Number(port) };
const gateway = createTestGateway(echoOptions);

if (way === "own") await gateway.listen(address);
if (way === "mounted") createServer(gateway.handler).listen(address);
if (way === "fetch") createServer((request, response) => void overFetch(request, response)).listen(address);

async function overFetch(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = await gateway.fetch(toRequest(request));
  response.writeHead(answer.status, [...answer.headers].flat());
  for await (const piece of answer.body ?? []) response.write(piece);
  response.end();
}

function toRequest(request: IncomingMessage): Request {
  const { method = "", url = "", headersDistinct } = request;
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const head = { method, headers };
  // With these methods, a Request has no body (Fetch §5.4).
  if (method === "GET" || method === "HEAD") return new Request(`http://127.0.0.1${url}`, head);
  return new Request(`http://127.0.0.1${url}`, { ...head, body: Readable.toWeb(request), duplex: "half" });
}
