import { connect, type ClientHttp2Stream, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { CaseRequest, Field } from "./case.ts";
import { type HttpResponse, bodyLimitBytes, bodyOf, type Exchange, headerOf, NoResponse } from "./response.ts";
import { targetOf } from "./http1.ts";

/**
 * Returns a function that sends requests over HTTP/2 to `base`. For an `http:` URL, HTTP/2 is used with prior knowledge
 * (RFC 9113 §3.3).
 */
export function createHttp2Exchange(base: URL): Exchange {
  return (request, timeoutMs) => {
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
    const session = connect(base.origin);
    const body = bodyOf(request);
    const timer = setTimeout(
      () => reject(new NoResponse("timeout", `did not respond within ${timeoutMs} ms`)),
      timeoutMs,
    );
    let isConnected = false;
    session.on("error", ({ message }) =>
      reject(isConnected ? new NoResponse("closed", closedBy(message)) : new NoResponse("no server", message)),
    );
    session.on("close", () => reject(new NoResponse("closed", "closed the connection before a response")));
    session.on("connect", () => {
      isConnected = true;
      const stream = session.request(toHeaders(request, body, base), { endStream: body === undefined });
      if (body !== undefined) stream.end(body);
      readResponse(stream, resolve, reject);
    });
    return promise.finally(() => {
      clearTimeout(timer);
      session.destroy();
    });
  };
}

function toHeaders(request: CaseRequest, body: Buffer | undefined, base: URL): OutgoingHttpHeaders {
  const length: Field[] = body === undefined ? [] : [["content-length", String(body.length)]];
  const fields = Object.groupBy([...headerOf(request), ...length], ([name]) => name);
  return {
    ":method": request.method,
    ":path": targetOf(request, base),
    // node:http2 expects an array for repeated fields.
    ...Object.fromEntries(Object.entries(fields).map(valuesOf)),
  };
}

function valuesOf([name, fields = []]: [string, readonly Field[] | undefined]): [string, string | string[]] {
  const [value = "", ...more] = fields.map((field) => field[1]);
  return [name, more.length === 0 ? value : [value, ...more]];
}

function closedBy(message: string): string {
  return `closed the connection (${message.trim()})`;
}

function readResponse(
  stream: ClientHttp2Stream,
  resolve: (response: HttpResponse) => void,
  reject: (error: Error) => void,
): void {
  const pieces: Buffer[] = [];
  let length = 0;
  let head: { readonly status: number; readonly header: readonly Field[] } | undefined;
  const end = (isComplete: boolean, why: string): void => {
    if (head === undefined) reject(new NoResponse("closed", why));
    else resolve({ ...head, body: Buffer.concat(pieces), isComplete });
  };
  stream.on("response", (headers) => {
    head = { status: headers[":status"] ?? 0, header: fieldsOf(headers) };
  });
  stream.on("data", (piece: Buffer) => {
    pieces.push(piece);
    length += piece.length;
    if (length > bodyLimitBytes)
      reject(new NoResponse("too large", `sent a body of more than ${bodyLimitBytes} bytes`));
  });
  stream.on("end", () => end(true, "ended the stream before a response"));
  stream.on("error", (error) => end(false, closedBy(error.message)));
  stream.on("close", () => end(false, "closed the stream before a response"));
}

function fieldsOf(headers: IncomingHttpHeaders): readonly Field[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith(":") || value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
  );
}
