import type { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import {
  Metadata,
  type MethodDefinition,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerErrorResponse,
  type ServerUnaryCall,
  status,
  type StatusObject,
  type UntypedHandleCall,
} from "@grpc/grpc-js";

/** A nice-grpc handler for any kind of method. */
export type NiceHandler = (request: unknown, context: NiceCallContext) => unknown;

// oxlint-disable-next-line typescript/no-explicit-any -- the type from grpc-js for messages with any type.
type GrpcUnaryCall = ServerUnaryCall<any, any>;
// oxlint-disable-next-line typescript/no-explicit-any -- as above.
type GrpcStreamCall = ServerDuplexStream<any, any>;

/** Converts a nice-grpc handler to a grpc-js handler. */
export function toGrpcJsHandler(
  { requestStream, responseStream }: Pick<MethodDefinition<unknown, unknown>, "requestStream" | "responseStream">,
  handler: NiceHandler,
): UntypedHandleCall {
  const requestOf = (call: object): unknown =>
    call instanceof Readable && requestStream ? requestsOf(call) : Reflect.get(call, "request");
  // oxlint-disable typescript/no-misused-promises -- a rejection of a returned promise ends the call.
  if (responseStream) return (call: GrpcStreamCall) => stream(call, (context) => handler(requestOf(call), context));
  return (call: GrpcUnaryCall, callback: sendUnaryData<unknown>) =>
    respond(call, callback, (context) => handler(requestOf(call), context));
  // oxlint-enable typescript/no-misused-promises
}

/** Returns a call's requests. A handler that stops reading requests may still respond. */
function requestsOf(call: Readable): AsyncIterable<unknown> {
  return { [Symbol.asyncIterator]: () => call.iterator({ destroyOnReturn: false }) };
}

async function respond(
  call: GrpcUnaryCall,
  callback: sendUnaryData<unknown>,
  handle: (context: NiceCallContext) => unknown,
): Promise<void> {
  const context = new NiceCallContext(call);
  try {
    const message = await handle(context);
    context.sendHeader();
    callback(null, message, context.trailer.grpcJs);
  } catch (error) {
    context.sendHeader();
    callback(toNiceStatus(error, context));
  }
}

async function stream(call: GrpcStreamCall, handle: (context: NiceCallContext) => unknown): Promise<void> {
  const canceller = new AbortController();
  const context = new NiceCallContext(call, canceller);
  // If the call ends early, such as after a serialization error, the abort informs a waiting generator.
  call.on("close", () => {
    if (!call.writableFinished) canceller.abort();
  });
  try {
    for await (const message of responsesOf(handle(context))) {
      context.sendHeader();
      if (!call.destroyed && !call.write(message)) await untilWritable(call);
      // Leaving the loop also closes the handler's generator.
      if (call.destroyed) return;
    }
    context.sendHeader();
    call.end(context.trailer.grpcJs);
  } catch (error) {
    context.sendHeader();
    call.emit("error", toNiceStatus(error, context));
  }
}

/** Waits until the next message may be sent, or the call has ended. */
async function untilWritable(call: GrpcStreamCall): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      call.off("drain", done).off("close", done);
      resolve();
    };
    call.on("drain", done).on("close", done);
  });
}

/** @throws TypeError for a result that cannot be iterated */
function responsesOf(returned: unknown): AsyncIterable<unknown> {
  if (isStream(returned)) return returned;
  throw new TypeError(`a handler of a stream must return an async iterable, got ${typeof returned}`);
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

// As in nice-grpc, only a `ServerError` has a code for the client.
function toNiceStatus(thrown: unknown, { trailer }: NiceCallContext): Partial<StatusObject> | ServerErrorResponse {
  const metadata = trailer.grpcJs;
  const error: unknown = thrown;
  if (isNiceServerError(error)) return { code: error.code, details: error.details, metadata };
  if (error instanceof Error && error.name === "AbortError") {
    return { code: status.CANCELLED, details: "The operation was cancelled", metadata };
  }
  const message = error instanceof Error ? error.message : typeof error === "string" ? error : inspect(error);
  return Object.assign(new Error(message, { cause: error }), { metadata });
}

/** Recognizes a `ServerError` from any nice-grpc copy, by the property that nice-grpc itself checks. */
function isNiceServerError(error: unknown): error is Pick<StatusObject, "code" | "details"> {
  return typeof error === "object" && error !== null && "@@nice-grpc:ServerError" in error;
}

/** The members of a grpc-js call that the context uses. */
interface ContextSource extends EventEmitter {
  readonly metadata: Metadata;
  getPeer(): string;
  sendMetadata(metadata: Metadata): void;
}

/** The second argument for nice-grpc handlers, which is nice-grpc's `CallContext`. */
class NiceCallContext {
  readonly metadata: NiceMetadata;
  readonly peer: string;
  readonly header: NiceMetadata = new NiceMetadata();
  readonly trailer: NiceMetadata = new NiceMetadata();
  /** Aborts when the call is cancelled, or at its deadline. */
  readonly signal: AbortSignal;
  /** Sends the header before the first response. Not a method, because `{ ...context }` copies only own properties. */
  readonly sendHeader: () => void;

  constructor(call: ContextSource, canceller: AbortController = new AbortController()) {
    call.on("cancelled", () => canceller.abort());
    this.metadata = new NiceMetadata(call.metadata);
    this.peer = call.getPeer();
    this.signal = canceller.signal;
    let isSent = false;
    this.sendHeader = () => {
      if (isSent) return;
      isSent = true;
      // An empty header is not sent now, because sending it early has no benefit.
      if (Object.keys(this.header.grpcJs.getMap()).length > 0) call.sendMetadata(this.header.grpcJs);
    };
  }
}

/** A metadata value, which is binary if the key ends with `-bin`. */
type NiceValue = string | Uint8Array;

/** Metadata with the nice-grpc interface. Several strings with the same key are joined by ", ". */
class NiceMetadata {
  /** The metadata for grpc-js. */
  readonly grpcJs: Metadata;

  constructor(metadata: Metadata = new Metadata()) {
    this.grpcJs = metadata;
  }

  /** @throws Error for a key or a value that gRPC does not allow, like the other methods that add values */
  set(key: string, value: NiceValue | readonly NiceValue[]): this {
    this.grpcJs.remove(key);
    for (const each of typeof value === "string" || value instanceof Uint8Array ? [value] : value) {
      this.append(key, each);
    }
    return this;
  }

  append(key: string, value: NiceValue): this {
    this.grpcJs.add(key, typeof value === "string" ? value : Buffer.from(value));
    return this;
  }

  delete(key: string): void {
    this.grpcJs.remove(key);
  }

  get(key: string): NiceValue | undefined {
    return this.getAll(key)[0];
  }

  getAll(key: string): NiceValue[] {
    const values = this.grpcJs.get(key);
    return values.length < 2 || key.toLowerCase().endsWith("-bin") ? values : [values.join(", ")];
  }

  has(key: string): boolean {
    return this.getAll(key).length > 0;
  }

  *[Symbol.iterator](): IterableIterator<[string, NiceValue[]]> {
    for (const key of Object.keys(this.grpcJs.getMap())) yield [key, this.getAll(key)];
  }
}
