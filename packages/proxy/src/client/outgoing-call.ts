import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode, type HeaderFields, readHeaderField, startDeadline } from "@plantstore/gateway/exchange";
import type { ResponseReceiver, ResponseSection, ClientConnection, ClientStream } from "@plantstore/http-engine/client";
import type { Caller, Upstream } from "../upstreams/index.ts";
import { type AnswerCoding, readAnswerHead } from "./answer-head.ts";
import { readStatus, resetError } from "./call-status.ts";
import type { ClientMethod } from "./client-method.ts";
import { encodeRequestFields, type RequestFields } from "./request-fields.ts";
import { type Retries, transparentRetries } from "./retries.ts";

/** What says that a caller has given up: an AbortSignal, or what costs less. */
export interface Abandonment {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: { handleEvent(): void }): void;
  removeEventListener(type: "abort", listener: { handleEvent(): void }): void;
}

/** What a call is made with. */
export interface CallInit {
  readonly upstream: Upstream;
  readonly method: ClientMethod;
  readonly fields: RequestFields;
  readonly signal: Abandonment | undefined;
  /** Milliseconds; `undefined` for no deadline. */
  readonly timeoutMs: number | undefined;
  /** When it is sent again. By default, once if it was certainly not processed. */
  readonly retries?: Retries;
}

/** A call on its way: it waits for a stream, is sent, and ends once, by its answer, its deadline, its caller or a loss. */
export abstract class OutgoingCall implements Caller, ResponseReceiver {
  protected readonly method: ClientMethod;
  protected stream: ClientStream | undefined;
  protected coding: AnswerCoding;
  /** The header of the answer; `undefined` before it has come, and if it is all of the answer. */
  protected head: HeaderFields | undefined;
  protected done = false;
  readonly #init: CallInit;
  readonly #startedAtMs: number;
  readonly #retries: Retries;
  /** How often it was sent, and how often since a server has said when it wants it. */
  #attempts = 1;
  #attemptsSincePushback = 1;
  /** Whether this attempt was repeated as the server had refused it. gRFC A6: once, so that no overload is multiplied. */
  #isRepeated = false;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopDeadline: (() => void) | undefined;

  constructor(init: CallInit) {
    this.#init = init;
    this.method = init.method;
    this.#retries = init.retries ?? transparentRetries;
    this.#startedAtMs = init.timeoutMs === undefined ? 0 : performance.now();
  }

  get waitsForReady(): boolean {
    return this.method.settings.waitsForReady;
  }

  /** Begins the call. */
  start(): void {
    const { signal, timeoutMs, upstream } = this.#init;
    if (signal?.aborted === true) return this.handleEvent();
    if (timeoutMs !== undefined) this.#stopDeadline = startDeadline(timeoutMs, () => this.fail(deadlineExceeded()));
    signal?.addEventListener("abort", this);
    upstream.call(this);
  }

  /** Is called when the caller's signal is aborted. */
  handleEvent(): void {
    if (this.abandonment !== undefined) this.fail(this.abandonment);
  }

  begin(connection: ClientConnection): void {
    const { fields, timeoutMs, method } = this.#init;
    let varying: Uint8Array;
    try {
      const leftMs = timeoutMs === undefined ? undefined : this.#leftMs(timeoutMs);
      varying = encodeRequestFields(fields, leftMs, this.#attempts - 1);
    } catch (error) {
      return this.fail(ConnectError.from(error));
    }
    this.stream = connection.open(fields.namesProgram ? method.anonymous : method.stable, varying, this);
    this.send(this.stream);
  }

  refuse(error: ConnectError): void {
    if (!this.done) this.#attemptFailed(error, undefined);
  }

  /** Sends the request, from its beginning. */
  protected abstract send(stream: ClientStream): void;

  /** Whether {@link send} can be called again. */
  protected abstract get repeatable(): boolean;

  /**
   * Called once when the call has failed.
   *
   * @param trailer - the trailer that says so; `undefined` if the answer is not complete
   */
  protected abstract failed(error: ConnectError, trailer: HeaderFields | undefined): void;

  /** Called once when the answer is complete, with its trailer; its status says success. */
  protected abstract completed(trailer: HeaderFields): void;

  /** Called when a header has come that is not all of the answer. */
  protected abstract begun(head: HeaderFields): void;

  abstract onData(piece: Uint8Array): void;

  abstract onWritable(): void;

  /** Ends the call with an error, and its stream with it. */
  fail(error: ConnectError): void {
    if (this.done) return;
    const { stream } = this;
    this.#finish();
    this.#init.upstream.leave(this);
    if (stream !== undefined) dropStream(stream);
    this.failed(error, undefined);
  }

  onHead(section: ResponseSection, ended: boolean): void {
    const coding = readAnswerHead(section, this.method.settings.acceptCompression);
    if (coding instanceof ConnectError) return this.#attemptFailed(coding, undefined);
    if (ended) return this.#end(section.fields, noFields);
    this.head = section.fields;
    this.coding = coding;
    this.begun(section.fields);
  }

  onEnd(trailer: ResponseSection | undefined): void {
    this.#end(trailer?.fields ?? noFields, this.head ?? noFields);
  }

  onReset(code: number): void {
    this.stream = undefined;
    // RFC 9113 §8.7: the only code that says that nothing was done, which is also that of streams above the last one of
    // a GOAWAY; after a header it could not be true.
    const isUntouched = code === ErrorCode.refusedStream && this.head === undefined;
    if (this.#isLate(code)) return this.fail(deadlineExceeded());
    if (!isUntouched || !this.repeatable || this.#isRepeated || !this.#retries.repeatsUntouched) {
      return this.#attemptFailed(resetError(code), undefined);
    }
    this.#isRepeated = true;
    this.#init.upstream.call(this);
  }

  /** Returns why the caller has given up; `undefined` if it has not. */
  protected get abandonment(): ConnectError | undefined {
    const { signal } = this.#init;
    return signal?.aborted === true ? ConnectError.from(signal.reason, Code.Canceled) : undefined;
  }

  /** Notes that the call is over: nothing else ends it. */
  #finish(): void {
    this.done = true;
    this.#stopDeadline?.();
    clearTimeout(this.#retryTimer);
    this.#init.signal?.removeEventListener("abort", this);
  }

  #end(trailer: HeaderFields, header: HeaderFields): void {
    const error = readStatus(trailer, header);
    if (error !== undefined) return this.#attemptFailed(error, trailer);
    this.#finish();
    this.#retries.succeeded();
    this.completed(trailer);
  }

  /** Ends the call, unless it is to be sent again: never once its answer has begun. */
  #attemptFailed(error: ConnectError, trailer: HeaderFields | undefined): void {
    const delayMs = this.head === undefined && this.repeatable ? this.#retryAfter(error, trailer) : undefined;
    if (delayMs === undefined) {
      if (trailer === undefined) return this.fail(error);
      this.#finish();
      return this.failed(error, trailer);
    }
    const { stream } = this;
    this.stream = undefined;
    if (stream !== undefined) dropStream(stream);
    this.#attempts += 1;
    this.#isRepeated = false;
    this.#retryTimer = setTimeout(() => this.#init.upstream.call(this), delayMs);
  }

  #retryAfter(error: ConnectError, trailer: HeaderFields | undefined): number | undefined {
    const { upstream, method } = this.#init;
    if (upstream.isClosed) return undefined;
    const pushback = readHeaderField(trailer ?? noFields, "grpc-retry-pushback-ms");
    const [attempts, attemptsSincePushback] = [this.#attempts, this.#attemptsSincePushback];
    this.#attemptsSincePushback = pushback === null ? attemptsSincePushback + 1 : 1;
    return this.#retries.failed({ method: method.desc, error, pushback, attempts, attemptsSincePushback });
  }

  /** Returns whether the server has given the call up because of its deadline, which it may notice earlier than we do. */
  #isLate(code: number): boolean {
    const { timeoutMs } = this.#init;
    return code === ErrorCode.cancel && timeoutMs !== undefined && this.#leftMs(timeoutMs) === leftMsMin;
  }

  /** Returns what is left of the deadline for the server: what was spent waiting for a stream is gone. */
  #leftMs(timeoutMs: number): number {
    const spentMs = Math.trunc(performance.now() - this.#startedAtMs);
    return Math.max(leftMsMin, timeoutMs - spentMs);
  }
}

const noFields: HeaderFields = [];

/** Ends a stream of which nothing is wanted any more. */
function dropStream(stream: ClientStream): void {
  stream.receiver = undefined;
  stream.reset(ErrorCode.cancel);
}

/** Milliseconds that a server is given at least. */
const leftMsMin = 1;

function deadlineExceeded(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
