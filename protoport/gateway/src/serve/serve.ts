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
 * `read`. All errors end in `request.fail`, which sends an error response. After `openServed`, a call continues in
 * `call.ts`.
 */

import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { type Exchange, fieldsNotSentAsMetadata, toUtf8 } from "../http/index.ts";
import { problem } from "../protobuf/index.ts";
import {
  type AdmitProcedure,
  type BodyReply,
  type BodyTarget,
  type BodyWire,
  type CallTarget,
  clientGoneError,
  messageTooLargeError,
} from "../protocols/index.ts";
import { type BodyReader, readBody, serveCall } from "./call.ts";
import { type Cors, respondToPreflight } from "./cors.ts";
import { type Endpoint, EndpointExchange, type EndpointResponse } from "./endpoint.ts";
import { type AnyCall, ServedRequest } from "./request.ts";
import { findTarget, type Target } from "./routes.ts";
import type { Server } from "./server.ts";

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

/** Calls `onRequest`. CORS preflights and calls from pages of other sites get their response in this step. */
function announce(request: ServedRequest): void {
  const exchange = ServedRequest.exchangeOf(request);
  const { onRequest, routes, allowsCrossSite } = ServedRequest.serverOf(request);
  if (onRequest !== undefined) onRequest(request);
  if (routes.cors !== undefined && respondToPreflight(exchange, routes.cors)) return request.settle(undefined);
  if (!allowsCrossSite && needsNoPreflight(exchange)) refuseCrossSite(exchange, request.origin, routes.cors);
  admit(request);
}

/**
 * Calls `admit` exactly once, before any response, even if the request has no target. A refusal by `admit` takes
 * precedence over a 404, 405 or 415.
 */
function admit(request: ServedRequest): void {
  const { target } = request;
  const server = ServedRequest.serverOf(request);
  const isOpen = target.kind === "endpoint" && target.endpoint.open;
  const admitted = server.admit === undefined || isOpen ? undefined : server.admit(request);
  // A synchronous decision needs no promise. An asynchronous decision may be a thenable from another library.
  if (admitted === undefined) return openServed(request);
  if (typeof admitted === "function") return admitProcedure(request, admitted);
  Promise.resolve(admitted)
    .then((check) => {
      if (ServedRequest.exchangeOf(request).aborted) request.settle(clientGoneError());
      // A program in JavaScript may resolve with any value.
      else if (typeof check === "function") admitProcedure(request, check);
      else openServed(request);
    })
    .catch((error: unknown) => request.fail(error));
}

/** Calls the function that `admit` has returned, except if the body names the procedure. */
function admitProcedure(request: ServedRequest, check: AdmitProcedure): void {
  const { procedure, descriptor } = request;
  const checked = procedure === undefined ? undefined : check(procedure, descriptor);
  if (checked === undefined) return openServed(request, check);
  Promise.resolve(checked)
    .then(() => (ServedRequest.exchangeOf(request).aborted ? request.settle(clientGoneError()) : openServed(request)))
    .catch((error: unknown) => request.fail(error));
}

/** Opens the request's target. @param check - admits or refuses the procedure that a body names */
function openServed(request: ServedRequest, check?: AdmitProcedure): void {
  const { target } = request;
  switch (target.kind) {
    case "unmatched":
      return request.refuse(target.error, target.open(ServedRequest.exchangeOf(request)));
    case "endpoint":
      return serveEndpoint(request, target.endpoint);
    case "body":
      return serveBody(request, target, serveCall, check);
    default:
      return serveCall(request, target);
  }
}

function serveEndpoint(request: ServedRequest, endpoint: Endpoint): void {
  const response = endpoint.handle(new EndpointExchange(ServedRequest.exchangeOf(request), request));
  // A pending response may be a thenable from another library.
  if (!("then" in response)) return writeEndpoint(request, response);
  Promise.resolve(response)
    .then((awaited) => writeEndpoint(request, awaited))
    .catch((error: unknown) => request.fail(error));
}

function writeEndpoint(request: ServedRequest, { httpStatus, header = {}, body }: EndpointResponse): void {
  const bytes = typeof body === "string" ? toUtf8(body) : body;
  const fields = Object.entries(header).filter(
    ([name, value]) => !fieldsNotSentAsMetadata.has(name.toLowerCase()) && request.allowsField(name, value),
  );
  ServedRequest.exchangeOf(request).respond(httpStatus, fields.flat(), bytes);
  request.settle(undefined);
}

type OpenCall = (request: ServedRequest, target: CallTarget) => void;

/** Reads an admitted request's body, which names the RPC. `check` admits or refuses this RPC. */
function serveBody(
  request: ServedRequest,
  target: BodyTarget,
  openCall: OpenCall,
  check: AdmitProcedure | undefined,
): void {
  request.beginBody(new BodyCall(request, target.open(ServedRequest.exchangeOf(request)), openCall, check));
}

/** A call before the RPC is known. Ends with a reply, an error, a disconnect, or the start of the named call. */
class BodyCall implements AnyCall, BodyReader {
  readonly request: ServedRequest;
  readonly wire: BodyWire;
  readonly #openCall: OpenCall;
  readonly #check: AdmitProcedure | undefined;

  constructor(request: ServedRequest, wire: BodyWire, openCall: OpenCall, check: AdmitProcedure | undefined) {
    this.request = request;
    this.wire = wire;
    this.#openCall = openCall;
    this.#check = check;
  }

  read(): void {
    readBody(this);
  }

  received(body: Uint8Array | undefined): void {
    const { request, wire } = this;
    if (body === undefined) return request.fail(messageTooLargeError(wire.body.limitBytes));
    try {
      const target = wire.readTarget(body, request);
      if (target.kind === "reply") return this.#reply(target);
      this.#admit(target);
    } catch (error) {
      request.fail(error);
    }
  }

  /** Opens the call if the function that `admit` has returned accepts the procedure. */
  #admit(target: CallTarget): void {
    const { request } = this;
    const { name, method } = target.rpc;
    // Hooks that run later see the procedure.
    request.procedure = name;
    request.stream = target.kind === "stream";
    const checked = this.#check?.(name, method);
    if (checked === undefined) return this.#openCall(request, target);
    Promise.resolve(checked)
      .then(() => this.#openCall(request, target))
      .catch((error: unknown) => request.fail(error));
  }

  #reply({ httpStatus, fields, body }: BodyReply): void {
    ServedRequest.exchangeOf(this.request).respond(httpStatus, fields, body);
    this.request.settle(undefined);
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    return this.wire.writeError(error, mayCompress);
  }
}

/**
 * Returns whether a browser may have sent a request without a preflight (Fetch, "CORS-safelisted request-header"), so
 * that CORS does not protect the request. GET and HEAD have no side effects.
 */
function needsNoPreflight({ httpMethod, common }: Exchange): boolean {
  return httpMethod === "POST" && (common.contentType === null || safelistedType.test(common.contentType));
}

// Browsers ignore malformed parameters. An empty type counts as no type.
const safelistedType = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)?\s*(?:;|$)/i;

/**
 * Refuses a request that a page of another site has sent, perhaps with the cookies of this site. Browsers report the
 * page's site in `Sec-Fetch-Site`, but over HTTP only on loopback, and the page's origin in `Origin`. Other clients
 * send neither.
 *
 * @param ownOrigin - the scheme and authority to which the client has sent the request
 * @throws ConnectError `PermissionDenied`
 */
function refuseCrossSite(exchange: Exchange, ownOrigin: string, cors: Cors | undefined): void {
  const site = exchange.get("sec-fetch-site");
  if (site === "same-origin" || site === "none") return;
  const origin = exchange.get("origin");
  if (origin !== null && cors?.allows(origin, hasAmbientCredentials(exchange)) === true) return;
  // A proxy that ends TLS changes the scheme. The origin "null" has no host.
  if (site === null && (origin === null || hostOfOrigin(origin) === hostOfOrigin(ownOrigin))) return;
  throw problem("ERR_CROSS_SITE", "pages of other sites may not send this request", {
    option: "cors.origins or crossSite",
  });
}

/** Returns whether a browser may have added credentials. Only scripts add bearer tokens, after a preflight. */
function hasAmbientCredentials(exchange: Exchange): boolean {
  const authorization = exchange.get("authorization");
  return exchange.get("cookie") !== null || (authorization !== null && !/^bearer\s/i.test(authorization));
}

function hostOfOrigin(origin: string): string | undefined {
  return origin.split("//", 2)[1]?.toLowerCase();
}
