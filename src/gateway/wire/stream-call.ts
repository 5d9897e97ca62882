import { Code, ConnectError, type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { Exchange } from "./exchange.ts";
import { goneAway } from "./gone-away.ts";
import { LazyHeaders, toFields } from "./header-fields.ts";
import { grpcWebContentType } from "./grpc-web-unary.ts";
import { decodeTextPieces, encodeTextPieces } from "./grpc-web-text-stream.ts";
import type { Procedure } from "./procedure.ts";
import type { RpcContentType } from "./rpc-content-type.ts";

/**
 * One call of a streaming RPC, served by Connect's own protocol handler.
 *
 * This is the only place that hands an exchange to Connect's universal handlers; unary calls never
 * come here.
 *
 * @param settled - called once, with the error that ended the call if one did
 */
export function serveStream(
  exchange: Exchange,
  procedure: Procedure,
  type: RpcContentType,
  values: ContextValues,
  settled: (error: ConnectError | undefined) => void,
): void {
  // It may have left while it was being admitted, of which nobody is told any more.
  if (exchange.gone) return settled(goneAway());
  const controller = new AbortController();
  exchange.listener = { aborted: (reason) => controller.abort(reason) };
  let outcome: ConnectError | undefined;
  values.set(outcomeKey, (error) => {
    outcome ??= error;
  });
  const run = async (): Promise<void> => {
    const header = new LazyHeaders(exchange.fields);
    // Connect's handler knows gRPC-Web in binary only: base64 comes off before it and goes on behind it.
    if (type.text) header.set("content-type", grpcWebContentType(type.format, false));
    const response = await procedure.handler({
      httpVersion: exchange.httpVersion,
      method: exchange.httpMethod,
      url: exchange.origin + exchange.target,
      header,
      body: type.text ? decodeTextPieces(exchange.streamBody()) : exchange.streamBody(),
      signal: controller.signal,
      contextValues: values,
    });
    await writeResponse(exchange, type.text ? toText(response, type) : response);
  };
  run().then(
    () => settled(outcome),
    (error: unknown) => {
      controller.abort(error);
      exchange.reset();
      settled(outcome ?? ConnectError.from(error, Code.Canceled));
    },
  );
}

function toText(response: UniversalServerResponse, { format }: RpcContentType): UniversalServerResponse {
  const header = new Headers(response.header);
  header.set("content-type", grpcWebContentType(format, true));
  if (response.body === undefined) return { ...response, header };
  return { ...response, header, body: encodeTextPieces(response.body) };
}

async function writeResponse(exchange: Exchange, response: UniversalServerResponse): Promise<void> {
  const pieces = response.body?.[Symbol.asyncIterator]() ?? noPieces;
  // Header fields may be set up to the first message, trailer fields up to the last.
  const first = await pieces.next();
  if (first.done === true) return answerWhole(exchange, response, undefined);
  const second = pieces.next();
  // An answer of one piece goes out with its end in one write: clients that see only a part of it may stop
  // sending the request, for which node:http2 resets the stream before the end is out.
  const soon: IteratorResult<Uint8Array> | undefined = await Promise.race([second, nextTurn()]);
  if (soon?.done === true) return answerWhole(exchange, response, first.value);
  exchange.begin(response.status, fieldsOfHeaders(response.header));
  let piece: IteratorResult<Uint8Array> = first;
  let following: typeof second | undefined = second;
  while (piece.done !== true) {
    try {
      await exchange.write(piece.value);
    } catch (error) {
      // The handler learns that nobody listens any more, and so can let go of what it holds.
      await pieces.throw?.(error).catch(() => undefined);
      throw error;
    }
    piece = await (following ?? pieces.next());
    following = undefined;
  }
  exchange.listener = undefined;
  exchange.end(response.trailer === undefined ? undefined : fieldsOfHeaders(response.trailer));
}

function answerWhole(exchange: Exchange, response: UniversalServerResponse, body: Uint8Array | undefined): void {
  const { status, trailer } = response;
  const header = fieldsOfHeaders(response.header);
  exchange.listener = undefined;
  if (trailer === undefined) exchange.answer(status, header, body ?? new Uint8Array(0));
  // gRPC's "Trailers-Only": one header section, where the handler has set no header fields of its own.
  else if (body === undefined && isProtocolOnly(header))
    exchange.answer(status, [...header, ...fieldsOfHeaders(trailer)]);
  else exchange.answer(status, header, body, fieldsOfHeaders(trailer));
}

function isProtocolOnly(header: readonly string[]): boolean {
  return header.every((name, i) => i % 2 === 1 || name === "content-type" || name === "grpc-encoding");
}

const noPieces: AsyncIterator<Uint8Array> = { next: () => Promise.resolve({ done: true, value: undefined }) };

/** A turn of the event loop. */
function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(() => resolve(undefined)));
}

function fieldsOfHeaders(headers: Headers | undefined): string[] {
  return headers === undefined ? [] : toFields(headers);
}

const outcomeKey = createContextKey<(error: ConnectError) => void>(() => undefined);

/**
 * The outermost interceptor of every stream: ends it at its deadline, or when the client has gone
 * away, whether or not the handler takes notice of its signal; and keeps the error it ended with.
 */
export const streamGuard: Interceptor = (next) => async (request) => {
  if (!request.stream) return next(request);
  const report = request.contextValues.get(outcomeKey);
  const abortable = createAbortable(request.signal);
  try {
    const response = await abortable.wait(next(request));
    if (response.stream) return { ...response, message: guardMessages(response.message, abortable, report) };
    abortable.release();
    return response;
  } catch (error) {
    abortable.release();
    report(ConnectError.from(error, Code.Internal));
    throw error;
  }
};

async function* guardMessages<M>(
  source: AsyncIterable<M>,
  abortable: Abortable,
  report: (error: ConnectError) => void,
): AsyncGenerator<M> {
  const messages = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await abortable.wait(messages.next());
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    report(ConnectError.from(error, Code.Internal));
    throw error;
  } finally {
    abortable.release();
    // Not awaited: a handler that is stuck would keep the answer from going out.
    messages.return?.().catch(() => undefined);
  }
}

interface Abortable {
  /** Settles as `work` does, or rejects as soon as the signal aborts. One wait at a time. */
  wait<T>(work: Promise<T>): Promise<T>;
  release(): void;
}

/** One listener for the life of a stream: a listener for each message costs more than the message. */
function createAbortable(signal: AbortSignal): Abortable {
  let giveUp: ((reason: unknown) => void) | undefined;
  const abort = (): void => giveUp?.(signal.reason);
  signal.addEventListener("abort", abort);
  return {
    wait: (work) =>
      new Promise((resolve, reject) => {
        giveUp = reject;
        if (signal.aborted) abort();
        work.then(resolve, reject);
      }),
    release: () => signal.removeEventListener("abort", abort),
  };
}
