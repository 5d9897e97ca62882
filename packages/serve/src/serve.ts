/**
 * A request's lifecycle, from the header to the response:
 *
 *     find its target → announce → admit → open → begin → read → decode → run → write
 *
 * If the path names the procedure, the step `admit` calls the function that `admit` returns. If the body names the
 * procedure, the function from `admit` is called between the steps `read` and `decode`.
 *
 * Each step below calls the next step as soon as possible. A step creates a promise only if the step must wait, because
 * a promise would double the step's cost. `findTarget` (`routes.ts`) decides about 404, 405 and 415, which are sent
 * once the request is admitted. `request.begin` (`request.ts`) checks the header, starts the deadline and then calls
 * `read`. All errors end in `request.fail`, which sends an error response. After `open`, streams continue in
 * `serve-stream.ts`. If the body names the RPC, the request continues in `serve-body.ts`.
 */
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, UnaryRequest } from "@connectrpc/connect";
import { type Exchange, fieldsNotSentAsMetadata, toUtf8 } from "@plantstore/http";
import {
  clientGoneError,
  type Reply,
  type ResponseParts,
  type UnaryRpc,
  type UnaryWire,
  type CallTarget,
  type UnaryTarget,
  type AdmitProcedure,
} from "@plantstore/protocols";
import { CallView } from "./call-view.ts";
import { respondToPreflight } from "./cors.ts";
import { type Endpoint, type EndpointResponse, EndpointExchange } from "./endpoint.ts";
import { forwardCall } from "./forward.ts";
import { decodeBody, type MessageCall, readBody } from "./read-message.ts";
import { exchangeOf, headersToSend, type ServedCall, ServedRequest, serverOf } from "./request.ts";
import { findTarget, type Target } from "./routes.ts";
import { serveBody } from "./serve-body.ts";
import { serveStream } from "./serve-stream.ts";
import type { Server } from "./server.ts";
import { explainUnwritable } from "./wrong-value.ts";

/**
 * Serves one exchange. Never throws. After an exception, an HTTP server could only close the connection, and a mounted
 * handler would exit the process.
 *
 * @param target - the request's target, if the caller has already found it
 * @param createValues - returns the initial context values, and may throw like `admit`
 */
export function serve(
  server: Server,
  exchange: Exchange,
  target: Target = findTarget(server.routes, exchange),
  createValues?: () => ContextValues | undefined,
): void {
  const request = new ServedRequest(server, exchange, target);
  try {
    if (createValues !== undefined) request.contextValues = createValues() ?? request.contextValues;
    announce(request);
  } catch (error) {
    request.fail(error);
  }
}

/** Calls `onRequest`. A CORS preflight gets its response in this step, without a credential. */
function announce(request: ServedRequest): void {
  const exchange = exchangeOf(request);
  const { onRequest, routes } = serverOf(request);
  if (onRequest !== undefined) onRequest(request);
  if (routes.cors !== undefined && respondToPreflight(exchange, routes.cors)) return request.settle(undefined);
  admit(request);
}

/**
 * Calls `admit` exactly once, before any response, even if the request has no target. A refusal by `admit` takes
 * precedence over a 404, 405 or 415.
 */
function admit(request: ServedRequest): void {
  const { target } = request;
  const server = serverOf(request);
  const isOpen = target.kind === "endpoint" && target.endpoint.open;
  const admitted = server.admit === undefined || isOpen ? undefined : server.admit(request);
  // A synchronous decision needs no promise. An asynchronous decision may be a thenable from another library.
  if (admitted === undefined) return open(request);
  if (typeof admitted === "function") return admitProcedure(request, admitted);
  Promise.resolve(admitted)
    .then((check) => {
      if (exchangeOf(request).aborted) request.settle(clientGoneError());
      // A program in JavaScript may resolve with any value.
      else if (typeof check === "function") admitProcedure(request, check);
      else open(request);
    })
    .catch((error: unknown) => request.fail(error));
}

/** Calls the function that `admit` has returned, except if the body names the procedure. */
function admitProcedure(request: ServedRequest, check: AdmitProcedure): void {
  const { procedure } = request;
  const checked = procedure === undefined ? undefined : check(procedure);
  if (checked === undefined) return open(request, check);
  Promise.resolve(checked)
    .then(() => (exchangeOf(request).aborted ? request.settle(clientGoneError()) : open(request)))
    .catch((error: unknown) => request.fail(error));
}

/** Opens the request's target. @param check - admits or refuses the procedure that a body names */
function open(request: ServedRequest, check?: AdmitProcedure): void {
  const { target } = request;
  switch (target.kind) {
    case "unmatched":
      return request.refuse(target.responder, target.refusal);
    case "endpoint":
      return serveEndpoint(request, target.endpoint);
    case "body":
      return serveBody(request, target, serveCall, check);
    default:
      return serveCall(request, target);
  }
}

function serveCall(request: ServedRequest, target: CallTarget): void {
  const { forward } = target.rpc;
  if (forward !== undefined) forwardCall(request, target, forward);
  else if (target.kind === "stream") serveStream(request, target);
  else serveUnary(request, target);
}

function serveUnary(request: ServedRequest, target: UnaryTarget): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  const timeoutMs = wire.timeoutMs ?? serverOf(request).defaultTimeoutMs;
  request.begin(new UnaryCall(request, rpc, wire, timeoutMs), rpc, timeoutMs);
}

/** A unary call, from opening the wire to the response. Each direction has one message. */
class UnaryCall implements ServedCall, MessageCall<Message>, Reply {
  readonly request: ServedRequest;
  readonly rpc: UnaryRpc;
  readonly wire: UnaryWire;
  readonly view: CallView;

  constructor(request: ServedRequest, rpc: UnaryRpc, wire: UnaryWire, timeoutMs: number | undefined) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.view = new CallView(this, exchangeOf(request), rpc, wire, timeoutMs);
  }

  read(): void {
    readBody(this);
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  decode(body: Uint8Array): Message | Promise<Message> {
    return this.wire.readMessage(body);
  }

  run(message: Message): void {
    this.view.message = message;
    try {
      this.rpc.run(this.view as CallView & UnaryRequest, this);
    } catch (error) {
      this.reject(error);
    }
  }

  /** Writes the response. */
  resolve(response: ResponseParts): void {
    if (this.request.isDone) return;
    let written: void | Promise<void>;
    try {
      const header = headersToSend(response.header, this.wire.responseHeader);
      const trailer = headersToSend(response.trailer, this.wire.responseTrailer);
      written = this.wire.writeMessage({ message: response.message, header, trailer });
    } catch (error) {
      return this.request.failToWrite(explainUnwritable(error, this.rpc, response));
    }
    this.request.succeed(written);
  }

  reject(thrown: unknown): void {
    this.request.failHandling(thrown, this.view);
  }

  writeError(error: ConnectError): void | Promise<void> {
    return this.wire.writeError(error);
  }
}

/** Calls an endpoint's handler, and sends the response. */
function serveEndpoint(request: ServedRequest, endpoint: Endpoint): void {
  const response = endpoint.handle(new EndpointExchange(exchangeOf(request), request));
  // A pending response may be a thenable from another library.
  if (!("then" in response)) return writeEndpoint(request, response);
  Promise.resolve(response)
    .then((awaited) => writeEndpoint(request, awaited))
    .catch((error: unknown) => request.fail(error));
}

function writeEndpoint(request: ServedRequest, { httpStatus, header = {}, body }: EndpointResponse): void {
  const bytes = typeof body === "string" ? toUtf8(body) : body;
  const fields = Object.entries(header).filter(([name]) => !fieldsNotSentAsMetadata.has(name.toLowerCase()));
  exchangeOf(request).respond(httpStatus, fields.flat(), bytes);
  request.settle(undefined);
}
