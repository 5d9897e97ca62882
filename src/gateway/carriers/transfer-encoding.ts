import { type HttpProblem, httpProblem } from "./request-target.ts";

/** Returns what is wrong with the Transfer-Encoding of a request over HTTP/1; `undefined` if nothing is. */
export function transferEncodingProblem(transferEncoding: string, httpVersion: string): HttpProblem | undefined {
  // RFC 9112 §6.1: the sender has probably forwarded a coding that it does not understand.
  if (httpVersion === "1.0") return httpProblem(400, "HTTP/1.0 has no transfer encoding");
  const isChunked = transferEncoding.toLowerCase() === "chunked";
  return isChunked ? undefined : httpProblem(400, "the transfer encoding is not supported");
}
