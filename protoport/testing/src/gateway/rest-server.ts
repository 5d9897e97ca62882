import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { startOnLoopback } from "../http/listen-on-loopback.ts";

interface ReceivedRequest {
  /** The request's method and target, such as `GET /v1/things?a=b`. */
  readonly line: string;
  readonly header: IncomingMessage["headers"];
  readonly body: string;
}

/** A server whose responses the test defines. Dispose of the server with `await using`. */
interface RestServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly seen: readonly ReceivedRequest[];
  open(): number;
}

/** Starts a server on a free loopback port. */
export async function startRestServer(
  respond: (response: ServerResponse, request: ReceivedRequest) => void,
): Promise<RestServer> {
  const seen: ReceivedRequest[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    open += 1;
    response.once("close", () => (open -= 1));
    buffer(request).then(
      (body) => {
        const { method, url, headers } = request;
        const found = { line: `${method} ${url}`, header: headers, body: body.toString() };
        seen.push(found);
        respond(response, found);
      },
      () => response.destroy(),
    );
  });
  return { ...(await startOnLoopback(server)), seen, open: () => open };
}

export function respondWith(
  response: ServerResponse,
  status: number,
  body: unknown,
  contentType = "application/json",
): void {
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": contentType }).end(text);
}
