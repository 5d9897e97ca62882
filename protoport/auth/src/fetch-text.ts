import { isLoopback, parsed, type ParseResult, withProblems } from "./inputs/index.ts";

/** A request to an identity provider. */
interface ProviderRequest {
  readonly url: URL;
  readonly header?: Readonly<Record<string, string>> | undefined;
  /** The form to send with POST. A request without a form is a GET. */
  readonly form?: URLSearchParams | undefined;
  /** Aborts the request, whether it is waiting for the headers or for the body. */
  readonly signal: AbortSignal;
}

/** A response body, or the reason why the request failed. `httpStatus` is set if a response was received. */
type FetchedText = ParseResult<string> & { readonly httpStatus?: number };

/** Maximum size of a response body, in bytes. A set with 100 RSA keys and certificate chains takes 400 KB. */
export const providerResponseLimitBytes: number = 512 * 1024;

/**
 * Sends a request to an identity provider and returns the response body. Never throws. Any status other than 200 is a
 * problem. Redirects are not followed, because only the configured URL was checked to be safe. Problem messages contain
 * the URL and the reason, never the request's content.
 */
export async function fetchText({ url, header, form, signal }: ProviderRequest): Promise<FetchedText> {
  try {
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      headers: { accept: "application/json", ...header },
      body: form ?? null,
      redirect: "manual",
      signal,
    });
    const { status: httpStatus, body } = response;
    if (httpStatus === 200) return { ...(await readBounded(url, body ?? [])), httpStatus };
    await body?.cancel();
    return { ...withProblems(`${withoutQuery(url)} responded with status ${httpStatus}`), httpStatus };
  } catch (error) {
    return withProblems(`cannot fetch ${withoutQuery(url)}: ${describeFailure(error)}`);
  }
}

async function readBounded(
  url: URL,
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<ParseResult<string>> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let lengthBytes = 0;
  let text = "";
  // The limit applies to the bytes after decompression. A `return` in the loop closes the connection.
  for await (const chunk of body) {
    lengthBytes += chunk.byteLength;
    if (lengthBytes > providerResponseLimitBytes) {
      return withProblems(`the response of ${withoutQuery(url)} is larger than ${providerResponseLimitBytes} bytes`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return parsed(text + decoder.decode());
}

/** Returns a URL without its query, which may contain a key, so that it can be logged. */
export function withoutQuery(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

// undici's message is "fetch failed". The `cause` has the reason, such as ECONNREFUSED or an invalid certificate.
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message === "" && "code" in cause ? String(cause.code) : cause.message;
}

/**
 * Parses an identity provider's URL, which must be `https`, because anyone who can modify a key set can forge tokens.
 * Plain `http` is allowed for loopback addresses, such as for a sidecar or in a test. A user name or password is
 * rejected, because URLs are logged.
 */
export function parseProviderUrl(text: string): ParseResult<URL> {
  const url = URL.parse(text);
  if (url === null) return withProblems(`${JSON.stringify(text)} is not a valid URL`);
  if (url.username !== "" || url.password !== "")
    return withProblems("a provider URL must not contain a user name or password");
  const isSafe =
    url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname.replaceAll(/[[\]]/g, "")));
  return isSafe ? parsed(url) : withProblems(`${text} must use https, or http to a loopback address`);
}
