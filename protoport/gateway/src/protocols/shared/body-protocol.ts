import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type Exchange, type HeaderFields, toUtf8 } from "../../http/index.ts";
import { messageTooLargeError } from "../envelope/compression.ts";
import type { Codec } from "../formats.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { BodyTarget, BodyWire, Protocol, Wire } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import { readRestTimeout } from "./timeouts.ts";

/** Creates a protocol in which every request is a POST to one path, and the body names the RPC. */
export function createBodyProtocol(
  name: Protocol["name"],
  path: string,
  open: (exchange: Exchange, protocol: Protocol) => BodyWire,
  openError: Protocol["openError"],
): Protocol & Required<Pick<Protocol, "find">> {
  const protocol: Protocol & Required<Pick<Protocol, "find">> = {
    name,
    hasHttpStatus: true,
    bodyPath: path,
    targetsOf: () => [],
    find: ({ httpMethod }, requestPath) => {
      if (requestPath !== path) return undefined;
      return httpMethod === "POST" ? target : { kind: "method-not-allowed", allow: "POST" };
    },
    handlesUnmatched: () => false,
    openError,
  };
  const target: BodyTarget = {
    kind: "body",
    protocol,
    rpc: undefined,
    pathTemplate: path,
    open: (exchange) => open(exchange, protocol),
  };
  return protocol;
}

/** The base class for wires of calls that a JSON body names. The JSON body also contains the call's message. */
export abstract class BodyCallWire implements Omit<Wire, "read" | "write" | "writeError" | "release"> {
  readonly carries = "messages";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly body = undefined;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders = new LazyHeaders([]);
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);
  protected readonly exchange: Exchange;
  protected readonly codec: Codec;
  readonly #readMaxBytes: number;

  /**
   * @param fields - the request header that the handler sees
   * @param defaultTimeoutMs - the timeout for a call whose client sets none
   */
  constructor(exchange: Exchange, rpc: Rpc, fields: HeaderFields, defaultTimeoutMs?: number) {
    const { maxTimeoutMs, readMaxBytes } = rpc.options;
    const { timeoutMs = defaultTimeoutMs, error } = readRestTimeout(exchange, maxTimeoutMs);
    this.timeoutMs = timeoutMs;
    this.problem = error;
    this.requestHeader = new LazyHeaders(fields);
    this.exchange = exchange;
    this.codec = rpc.codecs.json;
    this.#readMaxBytes = readMaxBytes;
  }

  readParts(): undefined {}

  /** Decodes the message. Checks the size here, because the RPC's limit was unknown when the body was read. */
  protected decode(json: string): Message {
    const bytes = toUtf8(json);
    if (bytes.byteLength > this.#readMaxBytes) throw messageTooLargeError(this.#readMaxBytes);
    return this.codec.decode(bytes);
  }
}

/** Returns a stream with a single message. */
export async function* oneMessage<Item>(message: Item): AsyncGenerator<Item, void> {
  yield message;
}

/**
 * Returns whether the page that sent a request may call RPCs. The check protects servers on a developer's machine from
 * DNS rebinding (Streamable HTTP, "Security & Endpoint"). Requests from programs have no `Origin`.
 *
 * The option `cors` lists allowed origins. Pages on loopback may send requests to loopback. This server's own pages are
 * allowed over https, because another name for the server's address would not match the certificate.
 */
export function isOriginAllowed(exchange: Exchange, corsOrigins: readonly string[] | "*" | undefined): boolean {
  const origin = exchange.get("origin");
  if (origin === null || corsOrigins === "*" || corsOrigins?.includes(origin) === true) return true;
  const own = exchange.url.slice(0, exchange.url.length - exchange.target.length);
  return loopbackOrigin.test(origin) ? loopbackOrigin.test(own) : own.startsWith("https://") && origin === own;
}

const loopbackOrigin = /^https?:\/\/(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?$/i;
