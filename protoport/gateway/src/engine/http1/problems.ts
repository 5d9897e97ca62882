import { HttpProblem } from "../../http/index.ts";

/** Returns the problem for a request that has not arrived within one of the `Limits`. */
export function requestTimeoutProblem(limit: "headerTimeoutMs" | "requestTimeoutMs"): HttpProblem {
  return new HttpProblem("ERR_REQUEST_TIMEOUT", "the request did not arrive in time", { option: `limits.${limit}` });
}

/** Returns the problem for bytes that are not HTTP. */
export function invalidHttpProblem(): HttpProblem {
  return new HttpProblem("ERR_HTTP_INVALID", "the request is not valid HTTP");
}

/** Returns the problem for a request in another HTTP version, or in a protocol that is similar to HTTP. */
export function unsupportedVersionProblem(): HttpProblem {
  return new HttpProblem("ERR_HTTP_UNSUPPORTED", "the HTTP version is not supported");
}

/** Returns the problem for a body with too large chunk extensions (RFC 9112 §7.1.1). */
export function chunkExtensionsTooLargeProblem(): HttpProblem {
  return new HttpProblem("ERR_BODY_TOO_LARGE", "the chunk extensions are too large");
}

/** Returns the problem for an unsupported Expect header, or `undefined` if the header is supported or ignored. */
export function expectationProblem(expect: string, httpVersion: "1.0" | "1.1"): HttpProblem | undefined {
  // Servers ignore the Expect header in HTTP/1.0 requests (RFC 9110 §10.1.1).
  if (httpVersion === "1.0" || expect.toLowerCase() === "100-continue") return undefined;
  return new HttpProblem("ERR_HTTP_UNSUPPORTED", "the Expect header is not supported", { httpStatus: 417 });
}

/** Returns the problem if a request's method is longer than all implemented methods (RFC 9112 §3). */
export function longMethodProblem(request: string): HttpProblem | undefined {
  if (!longMethod.test(request)) return undefined;
  return new HttpProblem("ERR_METHOD_UNKNOWN", `the method is longer than ${maxMethodCharacters} characters`);
}

/** Maximum characters in a method. Registered methods have up to 17 (RFC 9110 §16.1.1), custom ones may have more. */
const maxMethodCharacters = 32;
const longMethod = new RegExp(`^[A-Z][A-Z-]{${maxMethodCharacters}}`);
