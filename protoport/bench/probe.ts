import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { buffer, text } from "node:stream/consumers";
import { type IncomingMessage, request } from "node:http";
import { request as requestOverTls } from "node:https";
import { type LoadShape, originOf } from "./load/load.ts";

/** Sends one request from a load, and rejects unless the response is as expected. */
export type Probe = (port: number) => Promise<void>;

/** Returns a probe over HTTP/1.1 that requires a 2xx status. */
export function http1Probe(shape: LoadShape): Probe {
  return async (port) => {
    const { httpMethod: method, body, isTls, variants = [] } = shape;
    const { path, header: headers } = variants[0] ?? shape;
    const open = isTls === true ? requestOverTls : request;
    const call = open(originOf(shape, port) + path, { method, headers, rejectUnauthorized: false }).end(body);
    const [response]: IncomingMessage[] = await once(call, "response");
    const status = response?.statusCode ?? 0;
    const content = response === undefined ? "" : await text(response);
    if (status < 200 || status > 299) throw new Error(`the server responded with status ${String(status)}: ${content}`);
  };
}

/** Returns a probe over HTTP/2 that requires `grpc-status: 0` in the trailers. */
export function grpcProbe(shape: LoadShape): Probe {
  return async (port) => {
    const session = openSession(shape, port);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const trailers = once(stream, "trailers");
    stream.resume().end(shape.body);
    const [trailer]: { "grpc-status"?: string }[] = await trailers;
    session.close();
    if (trailer?.["grpc-status"] !== "0") throw new Error(`the call failed: ${JSON.stringify(trailer)}`);
  };
}

/** Returns a probe over HTTP/2 that checks the response message. @param check - throws if the message is unexpected */
export function grpcResponseProbe(shape: LoadShape, check: (message: Uint8Array) => void): Probe {
  return async (port) => {
    const session = openSession(shape, port);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const body = await buffer(stream.end(shape.body));
    session.close();
    // Skips the envelope's prefix.
    check(body.subarray(5));
  };
}

/** Returns a probe over HTTP/2 for calls without trailers, which requires status 200. */
export function http2Probe(shape: LoadShape): Probe {
  return async (port) => {
    const session = openSession(shape, port);
    const stream = session.request({ ":method": shape.httpMethod, ":path": shape.path, ...shape.header });
    const response = once(stream, "response");
    const end = once(stream.resume().end(shape.body), "end");
    const [header]: { ":status"?: number }[] = await response;
    await end;
    session.close();
    if (header?.[":status"] !== 200) throw new Error(`the server responded with status ${String(header?.[":status"])}`);
  };
}

function openSession(shape: LoadShape, port: number): ClientHttp2Session {
  return connect(originOf(shape, port), { rejectUnauthorized: false });
}
