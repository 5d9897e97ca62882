import { Code, type ConnectError, type ContextValues } from "@connectrpc/connect";
import { type Exchange, type HeaderReader, noBytes, type Peer, planBody } from "../exchange/index.ts";
import { problem, withCode } from "../errors/index.ts";
import { findMisspelled } from "../options/index.ts";
import { httpError, messageTooLarge } from "../protocols/index.ts";
import type { RequestView } from "./hooks.ts";

/** A plain HTTP resource beside the RPCs, for example a probe, a page or a webhook. */
export interface Endpoint {
  /** The exact path, without the gateway's prefix. No rule of REST may have it, whatever its method. */
  readonly path: string;
  /** Whether the path is outside the gateway's prefix, as `/.well-known/` paths are (RFC 8615). */
  readonly atRoot?: boolean;
  /** The methods that it answers; others are answered with 405. GET includes HEAD. Default GET. */
  readonly httpMethods?: readonly string[];
  /** Whether it is answered without calling `admit`. */
  readonly open: boolean;
  /**
   * Answers an admitted request. What it throws, or rejects with, is answered like what `admit` throws. A client that
   * leaves meanwhile gets no answer.
   */
  answer(request: EndpointRequest): EndpointAnswer | Promise<EndpointAnswer>;
}

/** The request that an {@link Endpoint} answers. The context values are as `admit` has left them. */
export interface EndpointRequest extends Pick<
  RequestView,
  "httpMethod" | "target" | "header" | "peer" | "contextValues"
> {
  /**
   * Reads the body as it was sent, its content coding included; empty if there is none. A body that is not read is
   * dropped. Called again, it returns the same.
   *
   * @param bytesMax - the most that the body may have
   * @throws RangeError for a limit that is no positive integer
   * @returns a promise that rejects with a `ConnectError`, to be answered as it is: 413 above `bytesMax`, or that the
   * client went away first, or was answered before the body had arrived
   */
  readonly readBody: (bytesMax: number) => Promise<Uint8Array>;
}

/** The answer of an {@link Endpoint}. */
export interface EndpointAnswer {
  /** From 200 to 599; any other status is a fault of the server, and the client gets 500. */
  readonly httpStatus: number;
  /** Header fields, including `content-type`; the length is added. */
  readonly header?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Answers `OPTIONS *`, which asks whether the server is there (RFC 9110 §9.3.7). */
export const serverEndpoint: Endpoint = {
  path: "*",
  atRoot: true,
  httpMethods: ["OPTIONS"],
  open: true,
  answer: () => ({ httpStatus: 204, body: "" }),
};

const endpointNames: Readonly<Record<keyof Endpoint, true>> = {
  path: true,
  atRoot: true,
  httpMethods: true,
  open: true,
  answer: true,
};

/**
 * Refuses an endpoint with a member that is most likely one of {@link Endpoint} in another spelling. Its other members
 * are its own, because it may be an object of any class.
 *
 * @throws TypeError that names both
 */
export function refuseMisspelledEndpoint(endpoint: Endpoint): void {
  const known = Object.keys(endpointNames);
  const missing = known.filter((name) => !(name in endpoint));
  const found = findMisspelled(Object.keys(endpoint), known, missing);
  if (found === undefined) return;
  const message = `unknown option "${found.name}" of endpoint ${endpoint.path}, did you mean "${found.meant}"?`;
  throw withCode(new TypeError(message), "ERR_OPTIONS");
}

/** Returns the methods that an endpoint answers, sorted as in `Allow`. */
export function methodsOf({ httpMethods = ["GET"] }: Endpoint): readonly string[] {
  const methods = new Set(httpMethods);
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods].toSorted();
}

/** What an endpoint sees of its exchange, which it could otherwise answer itself. */
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

  // Programs take it out of the request: `({ readBody }) => …`.
  readonly readBody = (bytesMax: number): Promise<Uint8Array> => (this.#body ??= readBody(this.#exchange, bytesMax));
}

function readBody(exchange: Exchange, bytesMax: number): Promise<Uint8Array> {
  // NaN would be a limit that nothing exceeds.
  if (!Number.isSafeInteger(bytesMax) || bytesMax <= 0) {
    throw new RangeError(`bytesMax of readBody must be a positive integer, got ${bytesMax}`);
  }
  const { body } = exchange;
  if (body === undefined) return Promise.resolve(noBytes);
  const reading = new Promise<Uint8Array>((resolve, reject) => {
    body.read(planBody(bytesMax), {
      received(bytes) {
        if (bytes === undefined) reject(messageTooLarge(bytesMax));
        else resolve(bytes);
      },
      dropped: (reason) => reject(reason === undefined ? answeredFirst() : httpError(reason)),
    });
  });
  // An endpoint that has begun to read may respond for another reason. A client must not be able to exit the process then.
  reading.catch(() => undefined);
  return reading;
}

function answeredFirst(): ConnectError {
  // Nobody is at fault: the endpoint has made its body superfluous.
  return problem("ERR_BODY_CONSUMED", "the response was sent before the request body was read", { code: Code.Canceled });
}
