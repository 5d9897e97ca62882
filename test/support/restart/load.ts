import { Agent, request as requestHttp1 } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { deletePlantProcedure, encodeDeletePlant } from "../plants/delete-plant.ts";
import { encodeEnvelope } from "../../../protoport/testing/src/gateway/envelope.ts";
import { wireFormats } from "../../../protoport/testing/src/gateway/wire-format.ts";
import type { Address } from "../../../protoport/testing/src/http/exchange.ts";

/** The outcomes of a load's calls. */
export interface LoadCounts {
  readonly completed: number;
  /** How many calls have deleted a plant. */
  readonly deleted: number;
  /** The gRPC calls above a GOAWAY's last stream, which were not processed, and which clients retry by themselves. */
  readonly unprocessed: number;
  /** Each failed call's error. */
  readonly failed: readonly string[];
}

/** Calls that are made one after the other until the load is stopped. */
export interface Load {
  readonly completed: () => number;
  /** Resolves when the last call has its response. */
  stop(): Promise<LoadCounts>;
}

type Outcome = "deleted" | "completed" | "unprocessed" | { readonly failed: string };

/** Calls over REST, one for each number, and what their responses mean. */
export interface RestCalls {
  readonly httpMethod: string;
  readonly header: Readonly<Record<string, string>>;
  path(id: bigint): string;
  /** Returns a response's outcome, or `undefined` for an unexpected one. */
  judge(id: bigint, httpStatus: number | undefined, body: string): Outcome | undefined;
}

/** Unary calls over gRPC, one for each number, and what their statuses mean. */
export interface GrpcCalls {
  readonly procedure: string;
  readonly header: Readonly<Record<string, string>>;
  message(id: bigint): Uint8Array;
  /** Returns a status's outcome, or `undefined` for an unexpected one. */
  judge(grpcStatus: string): Outcome | undefined;
}

/** A caller with a separate connection, which it reopens when necessary. */
export type Caller = { call(id: bigint): Promise<Outcome>; close(): void };

/** Starts callers that each delete one plant after the other. */
export function startLoad(callers: readonly Caller[]): Load {
  let completed = 0;
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
      else completed += 1;
      if (outcome === "deleted") deleted += 1;
    }
    caller.close();
  };
  const running = callers.map(run);
  return {
    completed: () => completed,
    stop: async () => {
      stopped.abort();
      await Promise.all(running);
      return { completed, deleted, unprocessed, failed };
    },
  };
}

const restDeletions = (token: string): RestCalls => ({
  httpMethod: "DELETE",
  header: { authorization: `Bearer ${token}` },
  path: (id) => `/plants/${id}`,
  judge: (_, httpStatus, body) => {
    if (httpStatus === 204) return "deleted";
    return httpStatus === 400 && body.startsWith('{"error":5,') ? "completed" : undefined;
  },
});

function grpcDeletions(token: string): GrpcCalls {
  const outcomes: Readonly<Record<string, Outcome>> = { 0: "deleted", 5: "completed" };
  return {
    procedure: deletePlantProcedure,
    header: { authorization: `Bearer ${token}` },
    message: (id) => encodeDeletePlant(wireFormats.grpc, id),
    judge: (grpcStatus) => outcomes[grpcStatus],
  };
}

/** Opens a caller that deletes plants over REST on one HTTP/1.1 connection that is kept alive. */
export const openRestCaller = (address: Address, token: string): Caller => callOverRest(address, restDeletions(token));
/** Opens a caller that deletes plants over gRPC on one HTTP/2 connection. */
export const openGrpcCaller = (address: Address, token: string): Caller => callOverGrpc(address, grpcDeletions(token));

/** Opens a caller over REST on one HTTP/1.1 connection that is kept alive. */
export function callOverRest({ address, port }: Address, calls: RestCalls): Caller {
  const { httpMethod: method, header: headers } = calls;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    call: (id) =>
      new Promise((resolve) => {
        const options = { host: address, port, agent, method, path: calls.path(id), headers };
        const request = requestHttp1(options, (response) => {
          let body = "";
          response.on("data", (piece) => (body += String(piece)));
          response.on("end", () => {
            const { statusCode } = response;
            resolve(calls.judge(id, statusCode, body) ?? { failed: `REST: ${statusCode} ${body}` });
          });
          response.on("error", (error) => resolve({ failed: `REST: ${error.message}` }));
        });
        request.on("error", (error) => resolve({ failed: `REST: ${error.message}` })).end();
      }),
    close: () => agent.destroy(),
  };
}

/** Opens a caller over gRPC on one HTTP/2 connection. */
export function callOverGrpc({ address, port }: Address, calls: GrpcCalls): Caller {
  const authority = `http://${address}:${port}`;
  let session: ClientHttp2Session | undefined;
  const current = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      // Session errors also fail the streams.
      session = connectHttp2(authority).on("error", () => {});
    }
    return session;
  };
  return { call: (id) => callGrpc(current(), id, calls), close: () => session?.close() };
}

function callGrpc(session: ClientHttp2Session, id: bigint, calls: GrpcCalls): Promise<Outcome> {
  return new Promise((resolve) => {
    const grpc = { "content-type": "application/grpc+proto", te: "trailers" };
    const stream = session.request({ ":method": "POST", ":path": calls.procedure, ...grpc, ...calls.header });
    let status: unknown;
    stream.on("response", (header) => (status = header["grpc-status"]));
    stream.on("trailers", (trailer) => (status ??= trailer["grpc-status"]));
    stream.on("error", () => {});
    stream.on("close", () => {
      const outcome = calls.judge(String(status));
      if (outcome !== undefined) resolve(outcome);
      else if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) resolve("unprocessed");
      else resolve({ failed: `gRPC: status ${String(status)}, reset ${stream.rstCode}` });
    });
    stream.resume().end(encodeEnvelope(0, calls.message(id)));
  });
}
