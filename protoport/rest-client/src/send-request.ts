import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorStyle, readResponseError } from "./response-error.ts";
import { readRecordJson } from "./response-body.ts";

/** A request for fetch. */
export interface FetchRequest {
  readonly url: string;
  readonly httpMethod: string;
  readonly header: Headers;
  readonly body: Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly signal: AbortSignal;
}

/**
 * Sends a request, and returns a successful response.
 *
 * @throws ConnectError from the response, `Unavailable` without a response, or `Unknown` for a redirect. Redirects are
 * not followed, because they lead to another resource, and possibly to another server
 */
export async function sendRequest(
  fetchFunction: typeof fetch,
  { url, httpMethod, header, body, signal }: FetchRequest,
  errors: ErrorStyle,
): Promise<Response> {
  const init = { method: httpMethod, headers: header, signal, redirect: "manual" } as const;
  const streamed = { ...init, duplex: "half" } as const;
  const fetchInit =
    body instanceof ReadableStream ? { ...streamed, body } : { ...init, body: body && new Uint8Array(body) };
  const request = body === undefined ? init : fetchInit;
  let response: Response;
  try {
    response = await fetchFunction(url, request);
  } catch (error) {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new ConnectError(
      `cannot get a response from the server: ${reason}`,
      Code.Unavailable,
      undefined,
      undefined,
      error,
    );
  }
  if (response.ok) return response;
  const { status, type, headers } = response;
  // In a browser, a redirect has the type "opaqueredirect" and no visible status.
  if (type === "opaqueredirect" || (status >= 300 && status < 400)) {
    const location = headers.get("location");
    throw new ConnectError(
      `the server redirected${location === null ? "" : ` to ${location}`}; redirects are not followed`,
      Code.Unknown,
    );
  }
  throw readResponseError(await readRecordJson(response), status, headers, errors);
}
