import { randomBytes } from "node:crypto";
import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { AdmitRequest } from "@plantstore/gateway";

/** The key of the request id in the context values of a call, once it was taken or {@link requestIdOf} has created it. */
export const requestIdKey: ContextKey<string | undefined> = createContextKey<string | undefined>(undefined);

/** Whether the answer to a call carries its request id already. */
const answeredKey: ContextKey<boolean> = createContextKey<boolean>(false);

/** The field that carries request ids in both directions. */
const fieldName = "x-request-id";

/** The longest request id that a client may send, in characters: twice a SHA-256 in hex, longer than any in use. */
const requestIdLengthMax = 128;

// The characters of UUIDs, ULIDs, base64, trace ids and the ids of common proxies. None of them has to be escaped in a
// log line, in a shell or in SQL.
const requestIdAlphabet = /^[A-Za-z0-9._~:/+=@-]+$/;

/**
 * Creates ids. 64 random bits identify the process, a counter the call: unique across replicas and restarts, and far
 * cheaper than random bytes for every call.
 */
class CallCounter {
  readonly #prefix = `${randomBytes(8).toString("hex")}-`;
  #last = 0;

  next(): string {
    this.#last += 1;
    return this.#prefix + this.#last.toString(36);
  }
}

const calls = new CallCounter();

/**
 * Returns the id that ties a request to its log lines and its deletion record.
 *
 * It is created on first use, unless the client has sent one, and then stays with the context values of the request. It
 * is `<16 hex digits>-<counter in base 36>`.
 */
export function requestIdOf(contextValues: ContextValues): string {
  const known = contextValues.get(requestIdKey);
  if (known !== undefined) return known;
  const requestId = calls.next();
  contextValues.set(requestIdKey, requestId);
  return requestId;
}

/** Which answers carry their request id: all, or those to requests that sent one, all errors, and all streams. */
export type RequestIdAnswers = "always" | "asked";

/** The hooks that deal with the ids of requests. */
export interface RequestIds {
  /** The name of the field that carries ids, for the list of those that pages may read. */
  readonly fieldName: string;
  /**
   * Takes the id that a client has sent, or creates one; a malformed id counts as not sent. Streams always carry the id
   * in the header of their answer, because they may fail after it is sent.
   */
  readonly onRequest: (request: AdmitRequest) => void;
  /** Adds the id to the answer to a request that has failed. */
  readonly onError: (request: AdmitRequest) => void;
}

/** Creates the hooks that take or create the id of each request, and send it in the answers that should carry it. */
export function createRequestIds(answers: RequestIdAnswers): RequestIds {
  return {
    fieldName: "X-Request-Id",
    onRequest: (request) => {
      const sent = request.xRequestId;
      const isTaken = sent !== null && sent.length <= requestIdLengthMax && requestIdAlphabet.test(sent);
      if (isTaken) request.contextValues.set(requestIdKey, sent);
      else requestIdOf(request.contextValues);
      // Not to every unary call: one more header field costs a microsecond, and few clients use it.
      if (isTaken || answers === "always" || request.stream) addToAnswer(request);
    },
    onError: addToAnswer,
  };
}

function addToAnswer(request: AdmitRequest): void {
  const { contextValues } = request;
  if (contextValues.get(answeredKey)) return;
  contextValues.set(answeredKey, true);
  request.addToAnswer(fieldName, requestIdOf(contextValues));
}
