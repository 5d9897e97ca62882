import type { FetchHandler } from "../../../gateway/src/index.ts";
import type { Field, HttpResponse, HttpRequest } from "./exchange.ts";

const origin = "http://fetch.example";

export const exchangeFetch = async (fetch: FetchHandler, request: HttpRequest): Promise<HttpResponse> =>
  await readResponse(await openFetch(fetch, request));

async function readResponse(response: Response): Promise<HttpResponse> {
  const body = Buffer.from(await response.arrayBuffer());
  return { httpStatus: response.status, header: [...response.headers], trailer: [], body };
}

/** Sends a request to a Fetch handler, and returns the response with its unread body. */
export async function openFetch(
  fetch: FetchHandler,
  { httpMethod, path, header, body }: HttpRequest,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const init = { method: httpMethod, headers: tuples(header), signal };
  const sent = body === undefined ? init : { ...init, body: new Uint8Array(body) };
  return await fetch(new Request(origin + path, sent));
}

/** A request body that is sent in pieces: HTTP/1.1 chunks, DATA frames or stream chunks. `using` aborts it. */
export interface Upload extends Disposable {
  /** Number of bytes that were written, but that the server has not received yet. */
  readonly waitingBytes: number;
  write(piece: Uint8Array | string): void;
  end(): void;
  /** Reads the complete response, which may arrive before the body ends. */
  readResponse(): Promise<HttpResponse>;
  /** Reads until the received bytes contain a string. */
  readUntil(text: string): Promise<string>;
  /** Cancels the request immediately, by a TCP RST, an HTTP/2 RST_STREAM, or a failing body. */
  reset(): void;
}

/** Sends a request header whose body follows in pieces. */
export function openFetchUpload(
  fetch: FetchHandler,
  [method, path]: readonly [httpMethod: string, path: string],
  header: readonly Field[],
): Upload {
  const { readable: body, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  // The types of the DOM have no `duplex`.
  const init: RequestInit & { duplex: "half" } = { method, headers: tuples(header), body, duplex: "half" };
  const response = fetch(new Request(origin + path, init));
  let reader: ReadableStreamDefaultReader<string> | undefined;
  let waitingBytes = 0;
  return {
    get waitingBytes() {
      return waitingBytes;
    },
    write: (piece): void => {
      const bytes = new Uint8Array(Buffer.from(piece));
      waitingBytes += bytes.byteLength;
      const onWritten = (): void => void (waitingBytes -= bytes.byteLength);
      writer.write(bytes).then(onWritten, () => undefined);
    },
    end: (): void => void writer.close().catch(() => undefined),
    readResponse: async (): Promise<HttpResponse> => await readResponse(await response),
    readUntil: async (text): Promise<string> => {
      reader ??= (await response).body?.pipeThrough(new TextDecoderStream()).getReader();
      let received = "";
      while (!received.includes(text)) {
        const { value } = (await reader?.read()) ?? {};
        if (value === undefined) throw new Error(`the response ended after ${JSON.stringify(received)}`);
        received += value;
      }
      return received;
    },
    reset: (): void => void writer.abort().catch(() => undefined),
    [Symbol.dispose]: (): void => void writer.abort().catch(() => undefined),
  };
}

const tuples = (header: readonly Field[]): [string, string][] => header.map(([name, value]) => [name, value]);

/** Returns whether Fetch can express a request. Fetch's URL parser rewrites some targets, and a GET has no body. */
export function canFetchSend({ httpMethod, path, body }: HttpRequest): boolean {
  if (body !== undefined && (httpMethod === "GET" || httpMethod === "HEAD")) return false;
  try {
    const { method, url } = new Request(origin + path, { method: httpMethod });
    return method === httpMethod && url === origin + path;
  } catch {
    return false;
  }
}
