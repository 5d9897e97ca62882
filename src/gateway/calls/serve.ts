/**
 * The way of a request, from its header to its answer:
 *
 *     match → announce → admit → open → read → decode → run → write
 *
 * Each step below calls the next one as soon as it can; a promise is made only where something must be waited for,
 * because it costs as much as a step. Whatever goes wrong ends in `request.fail`, which answers with an error.
 * Streams part from this way at `open`, and go on in `stream-call.ts`.
 */
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, UnaryRequest } from "@connectrpc/connect";
import { type BodyReceiver, type Exchange, noBytes, toUtf8 } from "../carriers/index.ts";
import {
  goneAway,
  messageTooLarge,
  type Reply,
  type ResponseParts,
  type UnaryProcedure,
  type UnaryWire,
} from "../protocols/index.ts";
import { answerPreflight } from "./cors.ts";
import { type Endpoint, type EndpointAnswer, EndpointExchange } from "./endpoint.ts";
import { idempotencyFieldKey } from "./hooks.ts";
import { CallView } from "./call-view.ts";
import { type Match, matchRequest } from "./match.ts";
import { exchangeOf, headersToSend, type ServedCall, ServedRequest, serverOf } from "./request.ts";
import type { Server } from "./server.ts";
import { StreamCall } from "./stream-call.ts";

/**
 * Serves one exchange. Never throws: a carrier could only end the connection, and a mounted handler the process.
 *
 * @param match - what the exchange asks for, if the caller has found that out already
 * @param createValues - returns the initial context values; what it throws is answered like a refusal of `admit`
 */
export type Serve = (exchange: Exchange, match?: Match, createValues?: () => ContextValues | undefined) => void;

/** Creates the function that serves one exchange. */
export function createServe(server: Server): Serve {
  return (exchange, match = matchRequest(server.table, exchange), createValues) => {
    const request = new ServedRequest(server, exchange, match);
    try {
      if (createValues !== undefined) request.contextValues = createValues() ?? request.contextValues;
      announce(request);
    } catch (error) {
      request.fail(error);
    }
  };
}

/** Tells the program of the request. A CORS preflight ends here, without a credential. */
function announce(request: ServedRequest): void {
  const exchange = exchangeOf(request);
  const server = serverOf(request);
  const { idempotencyKey } = exchange.common;
  if (idempotencyKey !== null) request.contextValues.set(idempotencyFieldKey, idempotencyKey);
  if (server.onRequest !== undefined) server.onRequest(request);
  if (server.cors !== undefined && answerPreflight(exchange, server.cors)) return request.settle(undefined);
  admit(request);
}

/**
 * Asks `admit`: exactly once, before anything is answered, even when nothing matched. Its refusal wins over the answer to
 * the match.
 */
function admit(request: ServedRequest): void {
  const { match } = request;
  const server = serverOf(request);
  const isOpen = match.kind === "endpoint" && match.endpoint.open;
  const admitted = server.admit === undefined || isOpen ? undefined : server.admit(request);
  // A decision made at once costs no promise. Anything that was returned may be another library's thenable.
  if (admitted === undefined) return open(request);
  Promise.resolve(admitted)
    .then(() => (exchangeOf(request).aborted ? request.settle(goneAway()) : open(request)))
    .catch((error: unknown) => request.fail(error));
}

/** Opens what the request asks for. */
function open(request: ServedRequest): void {
  const { match } = request;
  const exchange = exchangeOf(request);
  switch (match.kind) {
    case "unmatched":
      return request.refuse(match.error, match.httpStatus, match.fields);
    case "endpoint":
      return answerEndpoint(request, match.endpoint);
    case "stream":
      return new StreamCall(request, match.procedure, match.open(exchange)).start();
    case "unary":
      return new UnaryCall(request, match.procedure, match.open(exchange)).start();
  }
}

/** A unary call, from its open wire to its answer: one message each way. */
class UnaryCall implements ServedCall, BodyReceiver, Reply {
  readonly wire: UnaryWire;
  readonly view: CallView;
  readonly request: ServedRequest;
  readonly #procedure: UnaryProcedure;

  constructor(request: ServedRequest, procedure: UnaryProcedure, wire: UnaryWire) {
    this.request = request;
    this.#procedure = procedure;
    this.wire = wire;
    this.view = new CallView(this, exchangeOf(request), procedure, wire, request.timeoutOf(wire, procedure));
  }

  start(): void {
    this.request.begin(this, this.#procedure, this.request.timeoutOf(this.wire, this.#procedure));
  }

  /** Reads the body, if there is one that means something. */
  read(): void {
    const { body } = exchangeOf(this.request);
    if (body === undefined || this.wire.ignoresBody === true) this.received(noBytes);
    else body.read(this.wire.bodyLimitBytes, this, this.wire);
  }

  /** Decodes the body: path, query and body by a rule, JSON, or binary. */
  received(body: Uint8Array | undefined): void {
    if (body === undefined) return this.request.fail(messageTooLarge(this.#procedure.options.readMaxBytes));
    let message: Message | Promise<Message>;
    try {
      message = this.wire.readMessage(body);
    } catch (error) {
      return this.request.fail(error);
    }
    // Only compressed messages have to be waited for.
    if (!(message instanceof Promise)) return this.#run(message);
    message.then(
      (plain) => this.#run(plain),
      (error: unknown) => this.request.fail(error),
    );
  }

  /** Runs the interceptors and the handler. The call may have ended meanwhile. */
  #run(message: Message): void {
    if (this.request.done) return;
    this.view.message = message;
    try {
      this.#procedure.run(this.view as CallView & UnaryRequest, this);
    } catch (error) {
      this.takeError(error);
    }
  }

  /** Writes the answer. */
  take(response: ResponseParts): void {
    if (this.request.done) return;
    let written: void | Promise<void>;
    try {
      const header = headersToSend(response.header, this.wire.responseHeader);
      const trailer = headersToSend(response.trailer, this.wire.responseTrailer);
      written = this.wire.writeMessage({ message: response.message, header, trailer });
    } catch (error) {
      return this.request.failToWrite(error);
    }
    this.request.succeed(written);
  }

  takeError(thrown: unknown): void {
    this.request.failHandling(thrown, this.view);
  }

  writeError(error: ConnectError): void | Promise<void> {
    return this.wire.writeError(error);
  }
}

/** Answers with a plain resource beside the RPCs. */
function answerEndpoint(request: ServedRequest, endpoint: Endpoint): void {
  const answer = endpoint.answer(new EndpointExchange(exchangeOf(request), request));
  // It may be another library's thenable.
  if (!("then" in answer)) return writeEndpoint(request, answer);
  Promise.resolve(answer)
    .then((awaited) => writeEndpoint(request, awaited))
    .catch((error: unknown) => request.fail(error));
}

function writeEndpoint(request: ServedRequest, { httpStatus, header = {}, body }: EndpointAnswer): void {
  const bytes = typeof body === "string" ? toUtf8(body) : body;
  exchangeOf(request).answer(httpStatus, Object.entries(header).flat(), bytes);
  request.settle(undefined);
}
