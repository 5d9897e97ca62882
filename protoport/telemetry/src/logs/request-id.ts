import { randomBytes } from "node:crypto";
import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { AdmitRequest } from "@protoport/gateway";

/** The request id's context key, which is set when an id is accepted, or created by {@link requestIdOf}. */
export const requestIdKey: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined);

/** Whether the request id was added to the response. */
const addedKey: ContextKey<boolean> = createContextKey<boolean>(false);

/** The request id field in requests and responses. */
const requestIdField = "x-request-id";

/** Maximum characters in a client's request id. 128 characters are longer than any common request id. */
const maxRequestIdLength = 128;

// The characters in UUIDs, ULIDs, base64, trace ids and common proxies' ids. No allowed character needs escaping in a
// log line, a shell or SQL.
const requestIdAlphabet = /^[A-Za-z0-9._~:/+=@-]+$/;

/**
 * Creates request ids from 64 random bits for the process, and a counter for the call. The ids are unique across
 * replicas and restarts, and cost far less than random bytes for every call.
 */
class RequestIdGenerator {
  readonly #prefix = `${randomBytes(8).toString("hex")}-`;
  #last = 0;

  next(): string {
    this.#last += 1;
    return this.#prefix + this.#last.toString(36);
  }
}

const generator = new RequestIdGenerator();

/**
 * Returns a request's id, which is in the request's log lines and deletion record.
 *
 * If the client has not sent an id, an id is created on first use, and stored in the request's context values. A
 * created id has the format `<16 hex digits>-<counter in base 36>`.
 */
export function requestIdOf(contextValues: ContextValues): string {
  const known = contextValues.get(requestIdKey);
  if (known !== undefined) return known;
  const requestId = generator.next();
  contextValues.set(requestIdKey, requestId);
  return requestId;
}

/** The responses that contain the request id: all, or only errors, streams and responses to requests with an id. */
export type RequestIdResponses = "always" | "requested";

/** Gateway hooks for request ids. */
interface RequestIds {
  /** The response field's name, for `Access-Control-Expose-Headers`. */
  readonly fieldName: string;
  /**
   * Accepts the request id that a client has sent, or creates an id if the client's id is missing or malformed. A
   * stream's response header always contains the id, because the stream may fail after the header is sent.
   */
  readonly onRequest: (request: AdmitRequest) => void;
  /** Adds the id to a failed request's response. */
  readonly onError: (request: AdmitRequest) => void;
}

/** Creates hooks that accept or create each request's id, and add the id to the given responses. */
export function createRequestIds(responses: RequestIdResponses): RequestIds {
  return {
    fieldName: "X-Request-Id",
    onRequest: (request) => {
      const sent = request.xRequestId;
      const isAccepted = sent !== null && sent.length <= maxRequestIdLength && requestIdAlphabet.test(sent);
      if (isAccepted) request.contextValues.set(requestIdKey, sent);
      else requestIdOf(request.contextValues);
      // The id is not added to every unary response, because another header field costs a microsecond, and few clients
      // use the id.
      if (isAccepted || responses === "always" || request.stream) addToResponse(request);
    },
    onError: addToResponse,
  };
}

function addToResponse(request: AdmitRequest): void {
  const { contextValues } = request;
  if (contextValues.get(addedKey)) return;
  contextValues.set(addedKey, true);
  request.addResponseHeader(requestIdField, requestIdOf(contextValues));
}
