import { once } from "node:events";
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { within } from "../deadline.ts";
import {
  authorityOf,
  openSocket,
  fieldsOf,
  type Address,
  type Field,
  type HttpAnswer,
  type HttpRequest,
} from "./exchange.ts";

/** One answer on an HTTP/2 stream, with what only HTTP/2 has. */
export interface Http2Answer extends HttpAnswer {
  /** The stream's error code: 0 (NO_ERROR) when it ended as it should. */
  readonly resetCode: number;
}

/** An HTTP/2 connection of node's own client, for frames as they should be. */
export interface Http2Connection {
  readonly session: ClientHttp2Session;
  /** Opens a stream and sends the head only, with the END_STREAM flag when there is to be no body. */
  open(request: HttpRequest, options?: { readonly endStream: boolean }): ClientHttp2Stream;
  /** Sends a request whole and reads the answer whole. */
  exchange(request: HttpRequest): Promise<Http2Answer>;
  [Symbol.dispose](): void;
}

/** Opens an HTTP/2 connection with prior knowledge, or over TLS when `tls` is given. Dispose of it with `using`. */
export async function openHttp2(address: Address, tls?: SecureClientSessionOptions): Promise<Http2Connection> {
  const authority = authorityOf(address);
  const scheme = tls === undefined ? "http" : "https";
  // Not strict, so that a field that may come once can be sent twice: what the server makes of it is a row of the contract.
  const sessionOptions: SecureClientSessionOptions & { strictSingleValueFields: boolean } = {
    ...tls,
    strictSingleValueFields: false,
    ...(tls === undefined && { createConnection: () => openSocket(address) }),
  };
  const session = connect(`${scheme}://${authority}`, sessionOptions);
  // What goes wrong with the session shows at the streams that are waited for.
  session.on("error", () => {});
  await within(once(session, "connect"), "an HTTP/2 connection");
  const open: Http2Connection["open"] = (request, options) => {
    const head = [":method", request.httpMethod, ":path", request.path, ":scheme", scheme];
    if (!request.header.some((field) => field[0] === ":authority")) head.push(":authority", authority);
    return session.request([...head, ...request.header.flat()], {
      endStream: options?.endStream ?? request.body === undefined,
    });
  };
  return {
    session,
    open,
    exchange: async (request) => {
      const stream = open(request);
      if (request.body !== undefined) stream.end(request.body);
      return await readHttp2Answer(stream);
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}

/** Sends one request on a separate connection, and returns its response. */
export async function exchangeHttp2(address: Address, request: HttpRequest): Promise<Http2Answer> {
  using connection = await openHttp2(address);
  return await connection.exchange(request);
}

/**
 * Reads the answer of a stream to its end.
 *
 * A stream that is reset after its head came still has an answer: the reset code tells. One that is
 * reset before that has none, and this rejects with the code's name.
 */
export async function readHttp2Answer(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let httpStatus = 0;
  let header: Field[] = [];
  let trailer: Field[] = [];
  const chunks: Buffer[] = [];
  stream.on("response", (pseudo: IncomingHttpHeaders & { ":status"?: number }, _flags: number, raw: string[]) => {
    httpStatus = pseudo[":status"] ?? 0;
    header = fieldsOf(raw).filter((field) => field[0] !== ":status");
  });
  stream.on("trailers", (_: unknown, _flags: number, raw: string[]) => (trailer = fieldsOf(raw)));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  // A reset with an error code is told by 'close' too, with the code at hand.
  stream.on("error", () => {});
  if (!stream.closed || !stream.destroyed)
    await within(new Promise<void>((resolve) => stream.once("close", resolve)), "the end of an HTTP/2 stream");
  const resetCode = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
  if (httpStatus === 0) throw new Error(`the stream ended without an answer, with error code ${String(resetCode)}`);
  return { httpStatus, header, trailer, body: Buffer.concat(chunks), resetCode };
}
