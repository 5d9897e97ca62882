import { type Address, fieldValue, type HttpRequest } from "../../testing/src/http/exchange.ts";
import { type Http1Connection, openHttp1 } from "../../testing/src/http/http1-connection.ts";
import { maskField, renderBytes } from "./render.ts";

/** Records HTTP/1.1 responses on a single connection, for as long as the server keeps the connection open. */
export class Http1Recorder implements Disposable {
  readonly #address: Address;
  #connection: Http1Connection | undefined;
  #received: Buffer[] = [];

  constructor(address: Address) {
    this.#address = address;
  }

  /** Sends a request and returns the response's bytes as text. */
  async record(request: HttpRequest): Promise<string> {
    const connection = (this.#connection ??= await this.#open());
    this.#received = [];
    connection.request(request);
    let end = "";
    try {
      const { header } = await connection.readResponse(request.httpMethod);
      if (fieldValue(header, "connection") === "close") this[Symbol.dispose]();
    } catch {
      end = "(the connection closed before the end of the response)\n";
      this[Symbol.dispose]();
    }
    return renderHttp1(Buffer.concat(this.#received)) + end;
  }

  async #open(): Promise<Http1Connection> {
    const connection = await openHttp1(this.#address);
    connection.socket.on("data", (bytes: Buffer) => this.#received.push(bytes));
    return connection;
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }
}

/** Returns the bytes in one or more responses as text. Chunks are joined, because their boundaries depend on timing. */
export function renderHttp1(bytes: Buffer): string {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return bytes.byteLength === 0 ? "" : `${renderBytes(bytes)}\n`;
  const lines = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const head = lines.map((line) => `${renderBytes(Buffer.from(maskField(line), "latin1"))}\n`).join("");
  const body = bytes.subarray(headEnd + 4);
  if (head.startsWith("HTTP/1.1 1")) return `${head}\n${renderHttp1(body)}`;
  if (!/^transfer-encoding: chunked$/im.test(head)) return `${head}\n${renderBytes(body)}\n`;
  const { data, rest } = joinChunks(body);
  return `${head}\n(chunks) ${renderBytes(data)}\n${renderBytes(rest)}\n`;
}

/** Joins a body's chunks. @returns the chunks' data, and the trailer section after the last chunk */
function joinChunks(body: Buffer): { readonly data: Buffer; readonly rest: Buffer } {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const sizeEnd = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.toString("latin1", at, sizeEnd), 16);
    if (sizeEnd < 0 || !(size > 0)) return { data: Buffer.concat(chunks), rest: body.subarray(at) };
    chunks.push(body.subarray(sizeEnd + 2, sizeEnd + 2 + size));
    at = sizeEnd + 2 + size + 2;
  }
}
