import { type CodeName, type NamedOption, type ProblemName, problems } from "../problems.ts";
import type { Limits } from "./limits.ts";

/** The reason why a request fails at the HTTP level. The request is not valid, or the client has disconnected. */
export class HttpProblem extends Error {
  readonly errorCode: ProblemName;
  readonly httpStatus: number;
  readonly code: CodeName;
  /** The option with which the request would be accepted. */
  readonly option: NamedOption | undefined;

  /** @param more - overrides status and code, which {@link problems} defines for each identifier */
  constructor(
    errorCode: ProblemName,
    reason: string,
    more: { readonly httpStatus?: number; readonly code?: CodeName; readonly option?: NamedOption } = {},
  ) {
    super(reason);
    const defaults = problems[errorCode];
    this.errorCode = errorCode;
    this.httpStatus = more.httpStatus ?? defaults.httpStatus;
    this.code = more.code ?? defaults.code;
    this.option = more.option;
  }
}

/** The response status for a request if the client has disconnected. */
export const clientClosedRequest: number = problems.ERR_CLIENT_GONE.httpStatus;

/** Returns the problem for a request if the client has disconnected. */
export function clientGoneProblem(): HttpProblem {
  return new HttpProblem("ERR_CLIENT_GONE", "the client disconnected or cancelled the request");
}

/** Returns the problem for a header with more bytes than {@link Limits.headerBytes}. */
export function headerTooLargeProblem({ headerBytes }: Pick<Limits, "headerBytes">): HttpProblem {
  return new HttpProblem("ERR_HEADER_TOO_LARGE", `the header fields are larger than ${headerBytes} bytes`, {
    option: "limits.headerBytes",
  });
}

/** Returns the problem for a request target with more bytes than {@link Limits.urlBytes}. */
export function urlTooLongProblem({ urlBytes }: Pick<Limits, "urlBytes">): HttpProblem {
  return new HttpProblem("ERR_URL_TOO_LONG", `the URL is longer than ${urlBytes} bytes`, { option: "limits.urlBytes" });
}

/** Returns the problem for a body that was read before the gateway got the request. */
export function bodyConsumedProblem(): HttpProblem {
  const reason = "the request body was read before the gateway got it: mount the gateway before any body parser";
  return new HttpProblem("ERR_BODY_CONSUMED", reason);
}

/** Returns the problem for a Transfer-Encoding over HTTP/1, or `undefined` if the encoding is supported. */
export function transferEncodingProblem(transferEncoding: string, httpVersion: string): HttpProblem | undefined {
  // The HTTP/1.0 sender has probably forwarded a transfer coding without supporting the coding (RFC 9112 §6.1).
  if (httpVersion === "1.0")
    return new HttpProblem("ERR_HTTP_UNSUPPORTED", "Transfer-Encoding is not allowed in HTTP/1.0");
  const encoding = transferEncoding.toLowerCase();
  if (encoding === "chunked") return undefined;
  // The end of the body is unknown unless `chunked` is the last coding and occurs once (RFC 9112 §6.3).
  if (!codingsBeforeChunked.test(encoding))
    return new HttpProblem("ERR_HTTP_INVALID", "the Transfer-Encoding header is not valid");
  // 501 is the status for an unsupported transfer coding (RFC 9112 §6.1).
  const reason = "the transfer encoding is not supported";
  return new HttpProblem("ERR_HTTP_UNSUPPORTED", reason, { httpStatus: 501, code: "Unimplemented" });
}

// Matches transfer codings other than chunked, with or without parameters, followed by chunked (RFC 9112 §7).
const codingsBeforeChunked = /^(?:(?!chunked[\t ]*[,;])[!#$%&'*+\-.^_`|~0-9a-z]+[\t ]*(?:;[^,"]*)?,[\t ]*)+chunked$/;
