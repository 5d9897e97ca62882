import { once } from "node:events";
import { connect } from "node:http2";
import { buffer } from "node:stream/consumers";
import type { LoadShape } from "./load/load.ts";

/** Sends one request of a load, and rejects unless the response is the expected one. */
export type Probe = (port: number) => Promise<void>;

/** Returns a probe over HTTP/1.1 that requires a status of 2xx. */
export function http1Probe(shape: LoadShape): Probe {
  return async (port) => {
    const { httpMethod: method, header: headers, body = null, path } = shape;
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, { method, headers, body });
    const text = await response.text();
    if (!response.ok) throw new Error(`the server responded with status ${String(response.status)}: ${text}`);
  };
}

/** Returns a probe over HTTP/2 that requires `grpc-status: 0` in the trailers. */
export function grpcProbe(shape: LoadShape): Probe {
  return async (port) => {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const trailers = once(stream, "trailers");
    stream.resume().end(shape.body);
    const [trailer]: { "grpc-status"?: string }[] = await trailers;
    session.close();
    if (trailer?.["grpc-status"] !== "0") throw new Error(`the call failed: ${JSON.stringify(trailer)}`);
  };
}

/** Returns a probe over HTTP/2 that checks the message of the response. @param check - throws if it is unexpected */
export function grpcResponseProbe(shape: LoadShape, check: (message: Uint8Array) => void): Probe {
  return async (port) => {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const body = await buffer(stream.end(shape.body));
    session.close();
    // Skips the prefix of the envelope.
    check(body.subarray(5));
  };
}

/** Returns a probe over HTTP/2 for calls without trailers, which requires status 200. */
export function http2Probe(shape: LoadShape): Probe {
  return async (port) => {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const response = once(stream, "response");
    const end = once(stream.resume().end(shape.body), "end");
    const [header]: { ":status"?: number }[] = await response;
    await end;
    session.close();
    if (header?.[":status"] !== 200) throw new Error(`the server responded with status ${String(header?.[":status"])}`);
  };
}
