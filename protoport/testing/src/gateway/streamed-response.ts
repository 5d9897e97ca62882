import { once } from "node:events";
import { get } from "node:http";
import { Readable } from "node:stream";
import type { Gateway } from "../../../gateway/src/index.ts";
import { type Address, type Field, fieldsOf, type HttpVersion } from "../http/exchange.ts";
import { openHttp2 } from "../http/http2-connection.ts";
import { within } from "../deadline.ts";

/** A response whose body is read while it is sent. */
export type StreamedResponse = { readonly header: readonly Field[]; readonly body: Readable; [Symbol.dispose](): void };

/** Sends a GET on a separate connection, and waits for the response's header. Dispose of the result with `using`. */
export async function openResponse(
  { address: { address, port }, gateway }: { readonly address: Address; readonly gateway: Gateway },
  version: HttpVersion | "fetch",
  path: string,
  header: readonly Field[] = [],
): Promise<StreamedResponse> {
  if (version === "fetch") {
    const controller = new AbortController();
    const { signal } = controller;
    const request = new Request(`http://a${path}`, { headers: header.map(([name, value]) => [name, value]), signal });
    const { headers, body } = await within(gateway.fetch(request), "a response");
    return { header: [...headers], body: Readable.from(body ?? []), [Symbol.dispose]: () => controller.abort() };
  }
  if (version === "1.1") {
    const request = get({ host: address, port, path, headers: Object.fromEntries(header), agent: false });
    const [response] = await within(once(request, "response"), "a response");
    return { header: fieldsOf(response.rawHeaders), body: response, [Symbol.dispose]: () => void request.destroy() };
  }
  const connection = await openHttp2({ address, port });
  const stream = connection.open({ httpMethod: "GET", path, header }, { endStream: true });
  stream.on("error", () => undefined);
  const [, , raw] = await within(once(stream, "response"), "a response");
  return { header: fieldsOf(raw), body: stream, [Symbol.dispose]: () => connection[Symbol.dispose]() };
}

export class TextCollector {
  readonly #body: Readable;
  #text = "";

  constructor(body: Readable) {
    this.#body = body;
    body.setEncoding("utf8").on("data", (text: string) => void (this.#text += text));
  }

  /** Waits for the text. Drops it and what came before. */
  async until(text: string): Promise<void> {
    const wait = async (): Promise<void> => {
      while (!this.#text.includes(text)) await once(this.#body, "data");
    };
    await within(wait(), text);
    this.#text = this.#text.slice(this.#text.indexOf(text) + text.length);
  }
}
