import { once } from "node:events";
// oxfmt-ignore
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders,
  type SecureClientSessionOptions } from "node:http2";
import { within } from "../deadline.ts";
// oxfmt-ignore
import { authorityOf, openSocket, fieldsOf, type Address, type Field, type HttpResponse, type HttpRequest
} from "./exchange.ts";

/** A response on an HTTP/2 stream, with its error code. */
interface Http2Response extends HttpResponse {
  /** The stream's error code, which is 0 (NO_ERROR) if the stream was not reset. */
  readonly resetCode: number;
}

/** An HTTP/2 connection by node's client, which sends only valid frames. */
export interface Http2Connection {
  readonly session: ClientHttp2Session;
  /** Opens a stream and sends only the header, with END_STREAM if the request has no body. */
  open(request: HttpRequest, options?: { readonly endStream: boolean }): ClientHttp2Stream;
  exchange(request: HttpRequest): Promise<Http2Response>;
  [Symbol.dispose](): void;
}

/** Opens an HTTP/2 connection with prior knowledge, or over TLS if `tls` is set. Dispose of it with `using`. */
export async function openHttp2(address: Address, tls?: SecureClientSessionOptions): Promise<Http2Connection> {
  const authority = authorityOf(address);
  const scheme = tls === undefined ? "http" : "https";
  // The option is not strict, because the contract's tests send singleton fields twice.
  const sessionOptions: SecureClientSessionOptions & { strictSingleValueFields: boolean } = {
    ...tls,
    strictSingleValueFields: false,
    ...(tls === undefined && { createConnection: () => openSocket(address) }),
  };
  const session = connect(`${scheme}://${authority}`, sessionOptions);
  // The session's errors are ignored here, because they also fail its streams.
  session.on("error", () => {});
  await within(once(session, "connect"), "an HTTP/2 connection");
  const open: Http2Connection["open"] = (request, options) => {
    const head = [":method", request.httpMethod, ":path", request.path, ":scheme", scheme];
    if (!request.header.some((field) => field[0] === ":authority")) head.push(":authority", authority);
    const endStream = options?.endStream ?? request.body === undefined;
    return session.request([...head, ...request.header.flat()], { endStream });
  };
  return {
    session,
    open,
    exchange: async (request) => {
      const stream = open(request);
      if (request.body !== undefined) stream.end(request.body);
      return await readHttp2Response(stream);
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}

export async function exchangeHttp2(address: Address, request: HttpRequest): Promise<Http2Response> {
  using connection = await openHttp2(address);
  return await connection.exchange(request);
}

/** Reads a stream's complete response. Rejects if the stream is reset before the response header. */
export async function readHttp2Response(stream: ClientHttp2Stream): Promise<Http2Response> {
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
  // Errors are ignored here, because 'close' follows an error, and the code is available when 'close' is emitted.
  stream.on("error", () => {});
  if (!stream.closed || !stream.destroyed)
    await within(new Promise<void>((resolve) => stream.once("close", resolve)), "the end of an HTTP/2 stream");
  const resetCode = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
  if (httpStatus === 0) throw new Error(`the stream ended without a response, with error code ${String(resetCode)}`);
  return { httpStatus, header, trailer, body: Buffer.concat(chunks), resetCode };
}
