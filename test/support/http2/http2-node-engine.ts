import { once } from "node:events";
import { createServer, type ServerHttp2Stream, type ServerHttp2Session } from "node:http2";
import type { Address } from "../carriers/exchange.ts";
import { hold } from "./http2-requests.ts";

/** What node:http2 serves as the engine under test is asked to: it echoes the body, or holds it where it is told to. */
export interface NodeEngine {
  readonly address: Address;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts node:http2 with the limits that the engine under test is given. */
export async function startNodeEngine(limits: {
  readonly concurrentStreams: number;
  readonly streamWindowBytes: number;
}): Promise<NodeEngine> {
  const { concurrentStreams: maxConcurrentStreams, streamWindowBytes: initialWindowSize } = limits;
  const server = createServer({ settings: { maxConcurrentStreams, initialWindowSize, enablePush: false } });
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
  });
  server.on("sessionError", () => {});
  server.on("stream", serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the server has no port");
  return {
    address: bound,
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function serve(stream: ServerHttp2Stream, header: { readonly [hold: string]: unknown }): void {
  stream.on("error", () => {});
  if (hold[0] in header) return;
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    if (stream.destroyed) return;
    const body = Buffer.concat(pieces);
    stream.respond({ ":status": 200 }, { endStream: body.byteLength === 0 });
    if (body.byteLength > 0) stream.end(body);
  });
}
