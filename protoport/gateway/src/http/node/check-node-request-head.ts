import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import {
  type CommonHeaderFields,
  type HttpProblem,
  type Limits,
  checkRequestHead,
  transferEncodingProblem,
} from "../exchange/index.ts";

/** Checks a node request's head. Returns the target in origin form, or the problem. */
export function checkNodeRequestHead(
  request: IncomingMessage | Http2ServerRequest,
  common: CommonHeaderFields,
  limits: Limits,
): string | HttpProblem {
  const { httpVersion, method = "", url = "" } = request;
  const { transferEncoding, host, listBytes } = common;
  const problem = transferEncoding === null ? undefined : transferEncodingProblem(transferEncoding, httpVersion);
  const authority = ("authority" in request && request.authority) || host;
  return problem ?? checkRequestHead(method, url, authority, httpVersion !== "1.0", listBytes, limits);
}
