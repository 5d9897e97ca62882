import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode } from "@protoport/gateway/errors";
import { type HeaderFields, readHeaderField, startDeadline } from "@protoport/gateway/exchange";
import {
  type ClientConnection,
  type ClientStream,
  listBytesOf,
  type ResponseReceiver,
  type ResponseSection,
  sectionTooLarge,
} from "@protoport/gateway/http2-client";
import { type CallSignal, type Envelope, EnvelopeReader } from "@protoport/gateway/forward";
import type { PendingCall, Upstream } from "../upstreams/index.ts";
import { type ClientMethod, readResponseHead, type ResponseCoding } from "./client-method.ts";
import { readStatus, requestHeaderTooLargeError, resetError, responseHeaderTooLargeError } from "./call-status.ts";
import { encodeRequestFields, type RequestFields } from "./request-fields.ts";
import type { ResponseMessages } from "./response-messages.ts";
import { type Retries, transparentRetries } from "./retries.ts";

/** A call's parameters. */
export interface CallInit<T> {
  readonly upstream: Upstream;
  readonly method: ClientMethod<T>;
  readonly fields: RequestFields;
  /** The signal by which the caller cancels the call. */
  readonly signal: CallSignal | undefined;
  /** Timeout in milliseconds, or `undefined` for no deadline. */
  readonly timeoutMs: number | undefined;
  /** Decides about retries. By default, a call is retried once if it was certainly not processed. */
  readonly retries?: Retries;
  /** Whether large response messages are read in parts, if the method allows it. */
  readonly streamsLargeResponses?: boolean;
  /** Called with the header, and with a complete response's trailer. Trailers-only responses have only a trailer. */
  readonly metadata?: { header(fields: HeaderFields): void; trailer(fields: HeaderFields): void };
  /** Called once when the call ends. Must not throw. */
  readonly onEnd?: ((end: CallEnd) => void) | undefined;
}

/** A call's outcome after the last attempt. */
export interface CallEnd {
  /** The call error, or `undefined` if the call succeeded. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  /** Milliseconds for which the call waited for a connection or a stream, or 0 if it was sent immediately. */
  readonly queuedMs: number;
  /** How many attempts were made after the first attempt. */
  readonly retries: number;
}

/** A call that waits for a stream, sends the request, and ends once: by response, deadline, cancellation or failure. */
export abstract class OutgoingCall<T> implements PendingCall, ResponseReceiver {
  protected readonly method: ClientMethod<T>;
  protected stream: ClientStream | undefined;
  protected coding: ResponseCoding;
  /** The response header. Undefined before the header arrives, and for a trailers-only response. */
  protected head: HeaderFields | undefined;
  protected isDone = false;
  readonly #init: CallInit<T>;
  /** The current attempt's connection. */
  #connection: ClientConnection | undefined;
  readonly #startedAtMs: number;
  readonly #retries: Retries;
  /** Number of attempts, including the first. The second count restarts at each pushback from the server. */
  #attempts = 1;
  #attemptsSincePushback = 1;
  /** Whether this attempt is a transparent retry, which is allowed once per call to limit overload (gRFC A6). */
  #isTransparentRetry = false;
  /** How many attempts were made after the first, including transparent retries. */
  #retried = 0;
  /** Time at which this attempt was queued, or `undefined` if it is not queued. Measured only for `onEnd`. */
  #queuedSinceMs: number | undefined;
  #queuedMs = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopDeadline: (() => void) | undefined;

  constructor(init: CallInit<T>) {
    this.#init = init;
    this.method = init.method;
    this.#retries = init.retries ?? transparentRetries;
    const isTimed = init.timeoutMs !== undefined || init.onEnd !== undefined;
    this.#startedAtMs = isTimed ? performance.now() : 0;
  }

  get waitsForReady(): boolean {
    return this.method.settings.waitsForReady;
  }

  start(): void {
    const { signal, timeoutMs } = this.#init;
    if (signal?.aborted === true) return this.handleEvent();
    if (timeoutMs !== undefined)
      this.#stopDeadline = startDeadline(timeoutMs, () => this.fail(deadlineExceededError()));
    signal?.addEventListener("abort", this);
    this.#requestStream();
  }

  /** Called when the caller's signal is aborted. */
  handleEvent(): void {
    if (this.cancellation !== undefined) this.fail(this.cancellation);
  }

  begin(connection: ClientConnection): void {
    this.#countQueued();
    const { fields, timeoutMs, method } = this.#init;
    let varying: Uint8Array;
    try {
      const remainingMs = timeoutMs === undefined ? undefined : this.#remainingMs(timeoutMs);
      varying = encodeRequestFields(fields, remainingMs, this.#attempts - 1);
    } catch (error) {
      return this.fail(ConnectError.from(error));
    }
    const stable = fields.hasUserAgent ? method.stableWithoutUserAgent : method.stableFields;
    // For a header above their limit, some servers close the connection, which would fail other calls too.
    const { maxHeaderBytes, maxBlockBytes } = connection;
    const isLimited = maxHeaderBytes < Number.POSITIVE_INFINITY;
    if (isLimited && stable.listBytes + listBytesOf(fields.fields) + addedFieldsBytes > maxHeaderBytes) {
      return this.fail(requestHeaderTooLargeError(maxHeaderBytes));
    }
    if (stable.literal.byteLength + varying.byteLength > maxBlockBytes)
      return this.fail(requestHeaderTooLargeError(maxBlockBytes));
    this.#connection = connection;
    this.stream = connection.open(stable, varying, this);
    this.send(this.stream);
  }

  refuse(error: ConnectError): void {
    if (!this.isDone) this.#attemptFailed(error, undefined);
  }

  /** Sends the request from its start. */
  protected abstract send(stream: ClientStream): void;

  /** Whether {@link send} can be called again. */
  protected abstract get isRepeatable(): boolean;

  /**
   * Called once when the call has failed.
   *
   * @param trailer - the trailer with the status, or `undefined` if the response is not complete
   */
  protected abstract failed(error: ConnectError, trailer: HeaderFields | undefined): void;

  /** Called once when the response is complete and successful. @returns the error of an invalid message */
  protected abstract completed(trailer: HeaderFields): ConnectError | undefined;

  /** Called when the header arrives, except for a trailers-only response. */
  protected headReceived(_head: HeaderFields): void {}

  abstract onData(piece: Uint8Array): void;

  abstract onWritable(): void;

  /** Returns the error to report for a complete response that is not valid. */
  malformedError(error: ConnectError): ConnectError {
    return error;
  }

  /** Fails the call and resets its stream. */
  fail(error: ConnectError): void {
    if (this.isDone) return;
    const { stream } = this;
    this.#finish();
    this.#reportEnd(error);
    this.#init.upstream.dequeue(this);
    if (stream !== undefined) dropStream(stream);
    this.failed(error, undefined);
  }

  onHead(section: ResponseSection, ended: boolean): void {
    const coding = readResponseHead(section, this.method.settings.acceptCompression);
    if (coding instanceof ConnectError) return this.#attemptFailed(coding, undefined);
    if (ended) return this.#complete(section.fields, noFields);
    this.head = section.fields;
    this.coding = coding;
    this.#init.metadata?.header(section.fields);
    this.headReceived(section.fields);
  }

  onEnd(trailer: ResponseSection | undefined): void {
    this.#complete(trailer?.fields ?? noFields, this.head ?? noFields);
  }

  onReset(code: number): void {
    this.stream = undefined;
    // REFUSED_STREAM is the only code that guarantees that the request was not processed (RFC 9113 §8.7). Streams
    // excluded by a GOAWAY have this code too. If the server sent a response header, it processed the request.
    const isUnprocessed = code === ErrorCode.refusedStream && this.head === undefined;
    if (this.#isDeadlineReset(code)) return this.fail(deadlineExceededError());
    if (!isUnprocessed || !this.isRepeatable || this.#isTransparentRetry || !this.#retries.retriesUnprocessed) {
      const { receiver } = this.method.settings;
      const isTooLarge = code === sectionTooLarge;
      const { maxHeaderBytes } = this.#init.upstream;
      const error = isTooLarge
        ? responseHeaderTooLargeError(maxHeaderBytes, receiver)
        : resetError(code, this.#connection?.lossReason);
      return this.#attemptFailed(error, undefined);
    }
    this.#isTransparentRetry = true;
    this.#retried++;
    this.#requestStream();
  }

  /** The error for a cancelled call, or `undefined` if the caller did not cancel. */
  get cancellation(): ConnectError | undefined {
    const { signal } = this.#init;
    return signal?.aborted === true ? ConnectError.from(signal.reason, Code.Canceled) : undefined;
  }

  protected get streamsLargeResponses(): boolean {
    return this.#init.streamsLargeResponses === true;
  }

  protected readResponse(messages: ResponseMessages): AsyncIterable<T> {
    const { method } = this;
    const openPart = this.streamsLargeResponses ? method.openPart : undefined;
    const open = (envelope: Envelope): T | Promise<T> => method.open(envelope, this.coding);
    return messages.read(this, new EnvelopeReader(method.settings.readMaxBytes, open, openPart));
  }

  #requestStream(): void {
    const { upstream, onEnd } = this.#init;
    upstream.call(this);
    const isQueued = this.stream === undefined && !this.isDone;
    if (isQueued && onEnd !== undefined) this.#queuedSinceMs = performance.now();
  }

  #countQueued(): void {
    if (this.#queuedSinceMs === undefined) return;
    this.#queuedMs += performance.now() - this.#queuedSinceMs;
    this.#queuedSinceMs = undefined;
  }

  #finish(): void {
    this.isDone = true;
    this.#stopDeadline?.();
    clearTimeout(this.#retryTimer);
    this.#init.signal?.removeEventListener("abort", this);
  }

  #reportEnd(error: ConnectError | undefined): void {
    const { onEnd } = this.#init;
    if (onEnd === undefined) return;
    this.#countQueued();
    const durationMs = performance.now() - this.#startedAtMs;
    onEnd({ error, durationMs, queuedMs: this.#queuedMs, retries: this.#retried });
  }

  #complete(trailer: HeaderFields, header: HeaderFields): void {
    const error = readStatus(trailer, header);
    if (error !== undefined) return this.#attemptFailed(error, trailer);
    this.#finish();
    this.#retries.succeeded();
    this.#init.metadata?.trailer(trailer);
    this.#reportEnd(this.completed(trailer));
  }

  /** Fails the call, or schedules a retry. A call is never retried after its response has begun. */
  #attemptFailed(error: ConnectError, trailer: HeaderFields | undefined): void {
    const delayMs = this.head === undefined && this.isRepeatable ? this.#retryAfter(error, trailer) : undefined;
    if (delayMs === undefined) {
      if (trailer === undefined) return this.fail(error);
      this.#finish();
      this.#reportEnd(error);
      this.#init.metadata?.trailer(trailer);
      return this.failed(error, trailer);
    }
    const { stream } = this;
    this.stream = undefined;
    if (stream !== undefined) dropStream(stream);
    this.#attempts += 1;
    this.#isTransparentRetry = false;
    this.#retried++;
    this.#retryTimer = setTimeout(() => this.#requestStream(), delayMs);
  }

  #retryAfter(error: ConnectError, trailer: HeaderFields | undefined): number | undefined {
    const { upstream, method } = this.#init;
    if (upstream.isClosed) return undefined;
    const pushback = readHeaderField(trailer ?? noFields, "grpc-retry-pushback-ms");
    const [attempts, attemptsSincePushback] = [this.#attempts, this.#attemptsSincePushback];
    this.#attemptsSincePushback = pushback === null ? attemptsSincePushback + 1 : 1;
    return this.#retries.failed({ method: method.desc, error, pushback, attempts, attemptsSincePushback });
  }

  /** Returns whether the server reset the call after the deadline, possibly before the client detected the deadline. */
  #isDeadlineReset(code: number): boolean {
    const { timeoutMs } = this.#init;
    return code === ErrorCode.cancel && timeoutMs !== undefined && this.#remainingMs(timeoutMs) === minRemainingMs;
  }

  /** Returns the milliseconds until the deadline. The time in the queue counts towards the timeout. */
  #remainingMs(timeoutMs: number): number {
    const spentMs = Math.trunc(performance.now() - this.#startedAtMs);
    return Math.max(minRemainingMs, timeoutMs - spentMs);
  }
}

const noFields: HeaderFields = [];

/** Maximum bytes in the fields that each attempt adds: the deadline and the attempt count. */
const addedFieldsBytes = 128;

/** Resets a stream whose response is no longer needed. */
function dropStream(stream: ClientStream): void {
  stream.receiver = undefined;
  stream.reset(ErrorCode.cancel);
}

/** Minimum timeout that is sent, in milliseconds. */
const minRemainingMs = 1;

function deadlineExceededError(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
