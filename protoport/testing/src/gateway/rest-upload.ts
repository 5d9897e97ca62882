import { once } from "node:events";
import type { Duplex } from "node:stream";
import type { Gateway } from "../../../gateway/src/index.ts";
import type { Address, Field, HttpVersion } from "../http/exchange.ts";
import { openFetchUpload, type Upload } from "../http/fetch.ts";
import { openHttp1 } from "../http/http1-connection.ts";
import { openHttp2, readHttp2Response } from "../http/http2-connection.ts";
import type { Http2Server } from "./listen-for-tests.ts";

/** A transport over REST with separate code for bodies. */
type RestWay = { readonly name: string; readonly version: HttpVersion | "fetch"; readonly http2: Http2Server };

export const restWays: readonly RestWay[] = [
  { name: "HTTP/1.1", version: "1.1", http2: "listening" },
  { name: "HTTP/2", version: "2", http2: "listening" },
  { name: "HTTP/2, mounted", version: "2", http2: "mounted" },
  { name: "Fetch", version: "fetch", http2: "listening" },
];

/** Returns the test cases only for the first transport, for features that do not depend on the transport. */
export const onFirstWay = <Row>(way: Pick<RestWay, "name">, rows: readonly Row[]): readonly Row[] =>
  way.name === restWays[0]?.name ? rows : [];

/** Sends a request header on a separate connection. */
export async function openUpload(
  { address, gateway }: { readonly address: Address; readonly gateway: Gateway },
  version: HttpVersion | "fetch",
  [httpMethod, path]: readonly [httpMethod: string, path: string],
  header: readonly Field[] = [],
): Promise<Upload> {
  if (version === "fetch") return openFetchUpload(gateway.fetch, [httpMethod, path], header);
  return version === "1.1"
    ? await openHttp1Upload(address, `${httpMethod} ${path}`, header)
    : await openHttp2Upload(address, httpMethod, path, header);
}

async function openHttp1Upload(address: Address, request: string, header: readonly Field[]): Promise<Upload> {
  const connection = await openHttp1(address);
  const all = [...header, ["host", "a"], ["transfer-encoding", "chunked"]];
  const fields = all.map(([name, value]) => `${name}: ${value}`);
  connection.write(`${request} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
  return {
    get waitingBytes() {
      return connection.socket.writableLength;
    },
    write: (piece) => {
      const bytes = Buffer.from(piece);
      const head = Buffer.from(`${bytes.byteLength.toString(16)}\r\n`);
      connection.write(Buffer.concat([head, bytes, Buffer.from("\r\n")]));
    },
    end: () => connection.write("0\r\n\r\n"),
    readResponse: () => connection.readResponse(),
    readUntil: (text) => readUntil(connection.socket, text),
    reset: () => void connection.socket.resetAndDestroy(),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

async function openHttp2Upload(
  address: Address,
  httpMethod: string,
  path: string,
  header: readonly Field[],
): Promise<Upload> {
  const connection = await openHttp2(address);
  const stream = connection.open({ httpMethod, path, header }, { endStream: false });
  const response = readHttp2Response(stream);
  // The stream is closed, because a server waits for the body's end after its response, and the body may never end.
  stream.on("end", () => stream.close());
  // A rejection is ignored here, because an aborted upload has no response, and not every test reads the response.
  response.catch(() => undefined);
  return {
    get waitingBytes() {
      return stream.writableLength;
    },
    write: (piece) => void stream.write(piece),
    end: () => void stream.end(),
    readResponse: () => response,
    readUntil: (text) => readUntil(stream, text),
    // `close` is not used, because it would end the body before it resets the stream.
    reset: () => void stream.destroy(new Error("reset")),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

async function readUntil(socket: Duplex, text: string): Promise<string> {
  let seen = "";
  while (!seen.includes(text)) seen += String(await once(socket, "data"));
  return seen;
}
