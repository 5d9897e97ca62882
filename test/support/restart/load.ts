import { Agent, request as requestHttp1 } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { encodeEnvelope } from "../gateway/envelope.ts";
import { deletePlantProcedure, encodeDeletePlant, wireFormats } from "../gateway/wire-format.ts";
import type { Address } from "../carriers/exchange.ts";

/** What came of the calls of a load. */
export interface LoadCounts {
  readonly answered: number;
  /** Those of them that have deleted their plant; to the others it was not there. */
  readonly deleted: number;
  /** gRPC calls above the last stream of a GOAWAY, which were not processed, and which clients repeat by themselves. */
  readonly unprocessed: number;
  /** Why each of the others failed. */
  readonly failed: readonly string[];
}

/** Calls that are made one after the other until they are stopped. */
export interface Load {
  readonly answered: () => number;
  /** Resolves once the last call has its answer. */
  stop(): Promise<LoadCounts>;
}

type Outcome = "deleted" | "not-found" | "unprocessed" | { readonly failed: string };

/** A caller with a connection of its own, which it opens again when it has to. */
export interface Caller {
  call(id: bigint): Promise<Outcome>;
  close(): void;
}

/** Starts callers that each delete one plant after the other. */
export function startLoad(callers: readonly Caller[]): Load {
  let answered = 0;
  let deleted = 0;
  let unprocessed = 0;
  const failed: string[] = [];
  const stopped = new AbortController();
  let lastId = 0n;
  const run = async (caller: Caller): Promise<void> => {
    while (!stopped.signal.aborted) {
      const outcome = await caller.call(++lastId);
      if (outcome === "unprocessed") unprocessed += 1;
      else if (typeof outcome === "object") failed.push(outcome.failed);
      else answered += 1;
      if (outcome === "deleted") deleted += 1;
    }
    caller.close();
  };
  const running = callers.map(run);
  return {
    answered: () => answered,
    stop: async () => {
      stopped.abort();
      await Promise.all(running);
      return { answered, deleted, unprocessed, failed };
    },
  };
}

/** Opens a caller over REST on one HTTP/1.1 connection that is kept alive. */
export function openRestCaller({ address, port }: Address, token: string): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    call: (id) =>
      new Promise((resolve) => {
        const headers = { authorization: `Bearer ${token}` };
        const options = { host: address, port, agent, method: "DELETE", path: `/plants/${id}`, headers };
        const request = requestHttp1(options, (response) => {
          let body = "";
          response.on("data", (piece) => (body += String(piece)));
          response.on("end", () => resolve(judgeRest(response.statusCode, body)));
          response.on("error", (error) => resolve({ failed: `REST: ${error.message}` }));
        });
        request.on("error", (error) => resolve({ failed: `REST: ${error.message}` })).end();
      }),
    close: () => agent.destroy(),
  };
}

function judgeRest(status: number | undefined, body: string): Outcome {
  if (status === 204) return "deleted";
  return status === 400 && body.startsWith('{"error":5,') ? "not-found" : { failed: `REST: ${status} ${body}` };
}

/** Opens a caller over gRPC on one HTTP/2 connection. */
export function openGrpcCaller({ address, port }: Address, token: string): Caller {
  const authority = `http://${address}:${port}`;
  let session: ClientHttp2Session | undefined;
  const current = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      // What goes wrong with it shows at its streams.
      session = connectHttp2(authority).on("error", () => {});
    }
    return session;
  };
  return { call: (id) => callGrpc(current(), id, token), close: () => session?.close() };
}

function callGrpc(session: ClientHttp2Session, id: bigint, token: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const stream = session.request({
      ":method": "POST",
      ":path": deletePlantProcedure,
      "content-type": "application/grpc+proto",
      te: "trailers",
      authorization: `Bearer ${token}`,
    });
    let status: unknown;
    stream.on("response", (header) => (status = header["grpc-status"]));
    stream.on("trailers", (trailer) => (status ??= trailer["grpc-status"]));
    stream.on("error", () => {});
    stream.on("close", () => {
      if (status === "0") resolve("deleted");
      else if (status === "5") resolve("not-found");
      else if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) resolve("unprocessed");
      else resolve({ failed: `gRPC: status ${String(status)}, reset ${stream.rstCode}` });
    });
    stream.resume().end(encodeEnvelope(0, encodeDeletePlant(wireFormats.grpc, id)));
  });
}
