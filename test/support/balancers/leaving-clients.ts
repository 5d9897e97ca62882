import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import type { HttpVersion } from "../../../protoport/testing/src/http/exchange.ts";
import { within } from "../../../protoport/testing/src/deadline.ts";

/** A request that clients cancel before its response is complete. */
export interface LeftRequest {
  readonly httpMethod: "DELETE" | "GET" | "POST";
  readonly path: string;
  readonly header: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** Clients that have each sent a request and read only the first bytes in its response. */
export interface LeavingClients extends Disposable {
  begun(): Promise<unknown>;
  /** Cancels half of the requests by FIN or CANCEL, and half by RST or by closing the HTTP/2 connection. */
  leave(): void;
}

/** Sends requests, half for each way to cancel. */
export function openLeavingClients(
  version: HttpVersion,
  port: number,
  requests: readonly LeftRequest[],
): LeavingClients {
  const halves = [requests.slice(0, requests.length / 2), requests.slice(requests.length / 2)];
  const clients =
    version === "1.1"
      ? halves.flatMap((half, at) => half.map((request) => openHttp1(port, request, at === 0)))
      : halves.map((half, at) => openHttp2(port, half, at === 0));
  const leave = (): void => {
    for (const client of clients) client.leave();
  };
  const begun = () => within(Promise.all(clients.map((client) => client.begun)), "the beginning of all responses");
  return { begun, leave, [Symbol.dispose]: leave };
}

type LeavingClient = { readonly begun: Promise<unknown>; leave(): void };

function openHttp1(port: number, { httpMethod, path, header, body }: LeftRequest, resets: boolean): LeavingClient {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, "127.0.0.1");
  // Stops reading, so that further data fills the buffers on the way.
  socket.once("data", () => {
    socket.pause();
    resolve();
  });
  socket.on("error", () => undefined);
  const length = body === undefined ? {} : { "content-length": String(body.byteLength) };
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...header, ...length }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`${httpMethod} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  if (body !== undefined) socket.write(body);
  return { begun, leave: () => (resets ? socket.resetAndDestroy() : socket.destroy()) };
}

function openHttp2(port: number, requests: readonly LeftRequest[], cancels: boolean): LeavingClient {
  const session = connectHttp2(`http://127.0.0.1:${port}`).on("error", () => undefined);
  const streams = requests.map(({ httpMethod, path, header, body }) => {
    const fields = { ":method": httpMethod, ":path": path, ...header };
    const stream = session.request(fields, { endStream: body === undefined });
    stream.on("error", () => undefined);
    if (body !== undefined) stream.end(body);
    return stream;
  });
  const begun = streams.map((stream) => new Promise<void>((resolve) => stream.once("response", () => resolve())));
  return {
    begun: Promise.all(begun),
    leave: () => {
      if (!cancels) return session.destroy();
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
      // Streams are reset before the session closes.
      session.close();
    },
  };
}
