import { once } from "node:events";
import { connect } from "node:http2";
import { buffer } from "node:stream/consumers";
import type { LoadShape } from "./load/load.ts";

/** Sends one request of a load and rejects unless it is answered as the load expects. */
export type Probe = (port: number) => Promise<void>;

/** A probe over HTTP/1.1: the answer is 204, or 200. */
export function http1Probe(shape: LoadShape): Probe {
  return async (port) => {
    const { httpMethod: method, header: headers, body = null, path } = shape;
    const answer = await fetch(`http://127.0.0.1:${String(port)}${path}`, { method, headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`answered ${String(answer.status)}: ${text}`);
  };
}

/** A probe over HTTP/2: the trailers say that the gRPC call went well. */
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

/** A probe over HTTP/2 that also looks at the message of the answer. @param check - throws if it is another one */
export function grpcAnswerProbe(shape: LoadShape, check: (message: Uint8Array) => void): Probe {
  return async (port) => {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const answer = await buffer(stream.end(shape.body));
    session.close();
    // Behind the prefix of its envelope.
    check(answer.subarray(5));
  };
}

/** A probe over HTTP/2 for calls without trailers: the answer is 200. */
export function http2Probe(shape: LoadShape): Probe {
  return async (port) => {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const answered = once(stream, "response");
    const ended = once(stream.resume().end(shape.body), "end");
    const [header]: { ":status"?: number }[] = await answered;
    await ended;
    session.close();
    if (header?.[":status"] !== 200) throw new Error(`answered ${String(header?.[":status"])}`);
  };
}
