import { Code, type ConnectError, type ContextValues } from "@connectrpc/connect";
import {
  type Exchange,
  type HeaderReader,
  noBytes,
  type Peer,
  planBody,
  withCode,
  arrayOf,
  findMisspelled,
  type OptionNames,
  refuseUnknownOptions,
  required,
  requireObject,
} from "../http/index.ts";
import { problem } from "../protobuf/index.ts";
import { httpError, messageTooLargeError, type RequestView } from "../protocols/index.ts";

/** A plain HTTP resource in addition to the RPCs, for example a probe, a page or a webhook. */
export interface Endpoint {
  /**
   * The exact path, without the gateway's prefix. Unless {@link yieldsToRules} is set, an HTTP rule with the same path
   * is an error, even if the methods differ.
   */
  readonly path: string;
  /** Whether an HTTP rule with the same path and any method replaces the endpoint. Default false. */
  readonly yieldsToRules?: boolean;
  /** Whether the path is outside the gateway's prefix, as `/.well-known/` paths are (RFC 8615). */
  readonly atRoot?: boolean;
  /** The methods that the endpoint accepts. Requests with other methods get 405. GET includes HEAD. Default GET. */
  readonly httpMethods?: readonly string[];
  /** Whether requests are served without calling `admit`. */
  readonly open: boolean;
  /**
   * Returns the response to an admitted request. Errors are handled as if `admit` had thrown them. A client that
   * disconnects in the meantime gets no response.
   */
  handle(request: EndpointRequest): EndpointResponse | Promise<EndpointResponse>;
}

/** The request to an {@link Endpoint}, with the context values that `admit` has set. */
export interface EndpointRequest extends Pick<
  RequestView,
  "httpMethod" | "target" | "header" | "peer" | "contextValues"
> {
  /**
   * Reads the body as sent, without decompression. A request without a body has empty bytes. A body that is not read is
   * discarded. Further calls return the same promise.
   *
   * @param maxBytes - the body's maximum size in bytes
   * @throws RangeError for a limit that is not a positive integer
   * @returns a promise that rejects with a `ConnectError` if the body exceeds `maxBytes` (413), the client disconnects,
   * or the response is sent before the body has arrived
   */
  readonly readBody: (maxBytes: number) => Promise<Uint8Array>;
}

/** An {@link Endpoint}'s response. */
export interface EndpointResponse {
  /** The status, from 200 to 599. A status outside this range is reported as a fault, and the client gets 500. */
  readonly httpStatus: number;
  /**
   * The header fields, including `content-type`. `content-length`, `date` and connection fields are replaced. A field
   * that HTTP does not allow (RFC 9110 §5.5) is not sent, and reported to `onFault`.
   */
  readonly header?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Responds to `OPTIONS *`, which checks whether the server is available (RFC 9110 §9.3.7). */
export const serverEndpoint: Endpoint = {
  path: "*",
  atRoot: true,
  httpMethods: ["OPTIONS"],
  open: true,
  handle: () => ({ httpStatus: 204, body: "" }),
};

const endpointNames: OptionNames<Endpoint> = {
  path: required,
  yieldsToRules: true,
  atRoot: true,
  httpMethods: arrayOf(),
  open: required,
  handle: required,
};

/**
 * Rejects an endpoint without a required member or with an unknown member. A class instance may have other members,
 * except likely misspellings of {@link Endpoint} members.
 *
 * @throws TypeError that names the member
 */
export function refuseUnusableEndpoint(endpoint: Endpoint): void {
  requireObject(endpoint, "endpoints", "Endpoint");
  const owner = `endpoint ${endpoint.path}`;
  const known = Object.keys(endpointNames);
  const missing = known.filter((name) => !(name in endpoint));
  const found = isPlainObject(endpoint) ? undefined : findMisspelled(Object.keys(endpoint), known, missing);
  if (found !== undefined) {
    const text = `unknown option "${found.name}" of ${owner}, did you mean "${found.suggestion}"?`;
    throw withCode(new TypeError(text), "ERR_OPTIONS");
  }
  const members: object = isPlainObject(endpoint) ? endpoint : endpointMembersOf(endpoint);
  refuseUnknownOptions(members, endpointNames, owner);
  if (typeof endpoint.handle === "function") return;
  const type = typeof endpoint.handle;
  throw withCode(new TypeError(`handle of ${owner} must be a function, got ${type}`), "ERR_OPTIONS");
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns the members that {@link Endpoint} declares, including inherited ones. */
function endpointMembersOf({ path, yieldsToRules, atRoot, httpMethods, open, handle }: Endpoint): object {
  return { path, yieldsToRules, atRoot, httpMethods, open, handle };
}

/** Returns the methods that an endpoint accepts, sorted as in `Allow`. */
export function methodsOf({ httpMethods = ["GET"] }: Endpoint): readonly string[] {
  const methods = new Set(httpMethods);
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods].toSorted();
}

/** The request for an endpoint's handler. The exchange is private, so that the handler cannot write to the exchange. */
export class EndpointExchange implements EndpointRequest {
  readonly header: HeaderReader;
  readonly peer: Peer;
  readonly contextValues: ContextValues;
  readonly #exchange: Exchange;
  #body: Promise<Uint8Array> | undefined;

  constructor(exchange: Exchange, request: Pick<EndpointRequest, "header" | "peer" | "contextValues">) {
    this.header = request.header;
    this.peer = request.peer;
    this.contextValues = request.contextValues;
    this.#exchange = exchange;
  }

  get httpMethod(): string {
    return this.#exchange.httpMethod;
  }

  get target(): string {
    return this.#exchange.target;
  }

  // `readBoundedBody` is a bound function, so that handlers can destructure the request: `({ readBody }) => …`.
  readonly readBody = (maxBytes: number): Promise<Uint8Array> =>
    (this.#body ??= readBoundedBody(this.#exchange, maxBytes));
}

function readBoundedBody(exchange: Exchange, maxBytes: number): Promise<Uint8Array> {
  // NaN would disable the limit, because no length exceeds NaN.
  if (!Number.isSafeInteger(maxBytes) || maxBytes <= 0) {
    throw new RangeError(`maxBytes of readBody must be a positive integer, got ${maxBytes}`);
  }
  const { body } = exchange;
  if (body === undefined) return Promise.resolve(noBytes);
  const reading = new Promise<Uint8Array>((resolve, reject) => {
    body.read(planBody(maxBytes), {
      received(bytes) {
        if (bytes === undefined) reject(messageTooLargeError(maxBytes, {}));
        else resolve(bytes);
      },
      dropped: (reason) => reject(reason === undefined ? responseSentError() : httpError(reason)),
    });
  });
  // The endpoint may respond without awaiting the body. An unhandled rejection would then exit the process.
  reading.catch(() => undefined);
  return reading;
}

function responseSentError(): ConnectError {
  // The code is Canceled because neither side is at fault if an endpoint responds without reading the body.
  return problem("ERR_BODY_CONSUMED", "the response was sent before the request body was read", {
    code: Code.Canceled,
  });
}
