import { parsed, unparsed, type Parsed } from "./parsed.ts";

/** One question to an identity provider. */
export interface ProviderRequest {
  readonly url: URL;
  readonly header?: Readonly<Record<string, string>> | undefined;
  /** A form to POST; a GET without one. */
  readonly form?: URLSearchParams | undefined;
  /** Ends the wait, for the headers as well as for the body. */
  readonly signal: AbortSignal;
}

/** The most that is read of a provider's answer, in bytes: a key set of 100 RSA keys with certificate chains has 400 KB. */
export const providerAnswerLimitBytes: number = 512 * 1024;

/**
 * Asks an identity provider and returns the text of its answer; never throws.
 *
 * Only 200 is an answer. No redirect is followed: the configured URL was checked to be safe, the place it
 * points to was not. Problems name the URL and what happened, never what was sent.
 */
export async function fetchText({ url, header, form, signal }: ProviderRequest): Promise<Parsed<string>> {
  try {
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      headers: { accept: "application/json", ...header },
      body: form ?? null,
      redirect: "manual",
      signal,
    });
    if (response.status === 200) return await readBounded(url, response.body ?? []);
    await response.body?.cancel();
    return unparsed(`${placeOf(url)} answered ${response.status}`);
  } catch (error) {
    return unparsed(`${placeOf(url)}: ${describe(error)}`);
  }
}

async function readBounded(url: URL, body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Parsed<string>> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let lengthBytes = 0;
  let text = "";
  // The bytes are counted as they come out of decompression; returning from the loop ends the connection.
  for await (const chunk of body) {
    lengthBytes += chunk.byteLength;
    if (lengthBytes > providerAnswerLimitBytes) {
      return unparsed(`${placeOf(url)} answered more than ${providerAnswerLimitBytes} bytes`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return parsed(text + decoder.decode());
}

/** Returns a URL without its query, which may hold a key, as it may stand in a log. */
export function placeOf(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

// undici says "fetch failed" and keeps what happened (ECONNREFUSED, a certificate) in the cause.
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message === "" && "code" in cause ? String(cause.code) : cause.message;
}
