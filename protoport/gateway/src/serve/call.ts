import type { ConnectError } from "@connectrpc/connect";
import { type BodyReceiver, noBytes } from "../http/index.ts";
import {
  type Caller,
  type CallSignal,
  type CallTarget,
  type Content,
  Envelope,
  type ForwardedMessage,
  messageTooLargeError,
  type Reply,
  type RequestMessages,
  type ResponseParts,
  type Rpc,
  type StreamWire,
  type Wire,
} from "../protocols/index.ts";
import { CallView, ForwardedResponse, headersToSend } from "./call-view.ts";
import { type ServedCall, ServedRequest } from "./request.ts";
import { ConvertedMessages } from "./stream-messages.ts";
import { StreamResponse } from "./stream-response.ts";
import { explainUnwritable } from "./wrong-value.ts";

/** Opens a call and starts its deadline. */
export function serveCall(request: ServedRequest, target: CallTarget): void {
  const { rpc } = target;
  const wire = target.open(ServedRequest.exchangeOf(request));
  const { defaultTimeoutMs } = ServedRequest.serverOf(request);
  const timeoutMs = wire.timeoutMs ?? (target.kind === "unary" ? defaultTimeoutMs : undefined);
  request.begin(new Call(request, rpc, wire, timeoutMs), rpc, timeoutMs);
}

/** Reads a call from its wire, calls the RPC's callee, and writes the reply with the wire. */
export class Call implements ServedCall, BodyReader, Caller, Reply {
  readonly request: ServedRequest;
  readonly rpc: Rpc;
  readonly wire: Wire;
  readonly headers: Wire;
  readonly signal: CallSignal;
  /** Whether envelopes are passed on between wire and callee without being decoded. */
  readonly passesOn: boolean;
  readonly acceptsMessages: boolean;
  readonly deadlineMs: number | undefined;
  readonly receivedStart: BodyReader["receivedStart"];
  #view: CallView | undefined;
  #requests: RequestMessages<Content | Uint8Array> | undefined;
  /** A streamed response, or a response message in parts. */
  #response: StreamResponse | undefined;
  /** Converts the items of the response stream. `undefined` if the stream has messages. */
  #convert: ((item: unknown) => Content) | undefined;

  constructor(request: ServedRequest, rpc: Rpc, wire: Wire, timeoutMs: number | undefined) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.headers = wire;
    this.signal = request;
    this.passesOn = rpc.callee.wants !== "messages" && wire.carries !== "messages";
    this.acceptsMessages = !this.passesOn;
    this.deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    this.receivedStart = rpc.callee.wants === "parts" ? receiveParts : undefined;
    if (rpc.kind === "stream") this.#response = new StreamResponse(this, wire as StreamWire);
  }

  /** The call's view, which is created on first use. For a forwarded call without interceptors, only hooks use it. */
  get view(): CallView {
    if (this.#view !== undefined) return this.#view;
    const { request, rpc, wire, deadlineMs } = this;
    return (this.#view = new CallView(this, ServedRequest.exchangeOf(request), rpc, wire, deadlineMs));
  }

  // The response to a streaming client is sent once the response is complete.
  get streamsLargeResponses(): boolean {
    const { callee, method } = this.rpc;
    return callee.sendsParts && this.wire.carries === "parts" && method.methodKind !== "client_streaming";
  }

  // The time is rounded down, so that the call to the other server does not outlive this call.
  timeoutMs(): number | undefined {
    return this.deadlineMs === undefined ? undefined : Math.floor(this.deadlineMs - performance.now());
  }

  begin(): void {
    if (this.rpc.kind === "stream") this.#response?.beginSoon();
  }

  /** Undoes {@link begin} for another attempt of the call. */
  delayBegin(): void {
    this.#response?.delayBegin();
  }

  /** Reads the messages as they arrive, or the body if the client sends a single message. */
  read(): void {
    const { rpc, wire } = this;
    const { callee, method } = rpc;
    if (rpc.kind === "unary" || method.methodKind === "server_streaming") return readBody(this);
    const takePart = callee.wants === "parts" ? unchanged : undefined;
    this.#requests = (wire as StreamWire).readAll<Content | Uint8Array>(callee.take, takePart);
    callee.stream(this, this.#requests, this);
  }

  /** Reads the message from a body. A body above the limit is `undefined`. */
  received(body: Uint8Array | undefined): void {
    const { request, rpc } = this;
    if (body === undefined) return request.fail(messageTooLargeError(rpc.options.readMaxBytes));
    let message: Content | Promise<Content>;
    try {
      message = this.wire.read(body, rpc.callee.take);
    } catch (error) {
      return request.fail(error);
    }
    // Decompression is asynchronous. Uncompressed messages are decoded synchronously, which avoids a promise per call.
    if (!(message instanceof Promise)) return this.#run(message);
    message.then(
      (decompressed) => this.#run(decompressed),
      (error: unknown) => request.fail(error),
    );
  }

  #run(message: Content): void {
    if (this.request.isDone) return;
    const { kind, callee } = this.rpc;
    try {
      if (kind === "unary") callee.unary(this, message, this);
      else callee.stream(this, message, this);
    } catch (error) {
      this.reject(error);
    }
  }

  resolve(received: Envelope | ResponseParts): void {
    const { request, rpc, wire } = this;
    if (request.isDone || rpc.kind === "stream") return;
    let response: ResponseParts;
    try {
      response = received instanceof Envelope ? this.#toResponse(received) : received;
    } catch (error) {
      return this.reject(error);
    }
    let written: void | Promise<void>;
    try {
      const header = headersToSend(response.header, wire.responseHeader);
      const trailer = headersToSend(response.trailer, wire.responseTrailer);
      const unread = this.passesOn ? ForwardedResponse.unreadEnvelope(response, this) : undefined;
      written = wire.write(unread ?? response.message, header, trailer);
    } catch (error) {
      return request.failToWrite(explainUnwritable(error, rpc, response));
    }
    request.succeed(written);
  }

  #toResponse(envelope: Envelope): ResponseParts {
    const message = this.passesOn ? envelope : this.rpc.callee.decode(envelope);
    return { message, header: this.wire.responseHeader, trailer: this.wire.responseTrailer };
  }

  resolveAll(messages: AsyncIterable<unknown>, fields?: Pick<ResponseParts, "header" | "trailer">): void {
    const { responseHeader, responseTrailer } = this.wire;
    const { header, trailer } = fields ?? { header: responseHeader, trailer: responseTrailer };
    // Only a wire with envelopes carries parts of a unary call. All wires with envelopes also write streams.
    this.#response ??= new StreamResponse(this, this.wire as StreamWire);
    const converted = messages instanceof ConvertedMessages ? messages : undefined;
    this.#convert = converted?.convert;
    this.#response.respond(header, trailer, converted?.source ?? messages, converted === undefined);
  }

  reject(thrown: unknown): void {
    this.request.failHandling(thrown, this.view);
  }

  toMessage(item: unknown): Content | ForwardedMessage {
    const isCarried = this.passesOn && (item instanceof Envelope || item instanceof Uint8Array);
    return this.#convert === undefined || isCarried ? (item as Content | ForwardedMessage) : this.#convert(item);
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    return (this.#response ?? this.wire).writeError(error, mayCompress);
  }

  get maxErrorCompressionMs(): number | undefined {
    return this.#response?.maxErrorCompressionMs;
  }

  close(): void {
    this.#requests?.close?.();
    this.#response?.close();
  }
}

function receiveParts(this: Call, start: Uint8Array, rest: AsyncIterable<Uint8Array>): boolean {
  try {
    const parts = this.wire.readParts(start, rest);
    if (parts === undefined) return false;
    this.rpc.callee.stream(this, parts, this);
  } catch (error) {
    this.request.fail(error);
  }
  return true;
}

function unchanged(part: Uint8Array): Uint8Array {
  return part;
}

/** Reads a request body, either for a call or to find the call that the body names. */
export interface BodyReader extends BodyReceiver {
  readonly request: ServedRequest;
  readonly wire: Pick<Wire, "body">;
}

/** Reads a request body unless the request has no body or the wire ignores bodies. */
export function readBody(reader: BodyReader): void {
  const { body } = ServedRequest.exchangeOf(reader.request);
  const plan = reader.wire.body;
  if (body === undefined || plan === undefined) reader.received(noBytes);
  else body.read(plan, reader);
}
