import { request as requestHttp } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { type Http2Server, type HttpVersion, openHttp2, openResponse, retainedBytes } from "@protoport/testing";
import { startFiles, type TestFiles } from "../../../testing/src/gateway/files.ts";

// The server streams large files as google.api.HttpBody, and holds only the bytes in transit.

/** The size of the files, many times the memory that the server may hold. The nightly run uses a gigabyte. */
const fileBytes = Number(process.env["LARGE_FILE_BYTES"] ?? 200_000_000);
const piece = Buffer.alloc(250_000, "x");
/** Windows, socket buffers on both sides, and garbage that has not been collected yet. */
const maxHeldBytes = 32 * 1024 * 1024;
const samples = 4;

class Gauge {
  readonly #beforeBytes: number;
  bytes = 0;
  mostBytes = 0;

  private constructor(beforeBytes: number) {
    this.#beforeBytes = beforeBytes;
  }

  static async open(): Promise<Gauge> {
    return new Gauge(await retainedBytes());
  }

  async count(bytes: number): Promise<void> {
    const before = this.bytes;
    this.bytes += bytes;
    const isSample = Math.trunc((before * samples) / fileBytes) < Math.trunc((this.bytes * samples) / fileBytes);
    if (isSample) this.mostBytes = Math.max(this.mostBytes, (await retainedBytes()) - this.#beforeBytes);
  }
}

async function* file(): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < fileBytes; sent += piece.byteLength) yield piece;
}

/** Uploads the file with backpressure, and returns the response. */
async function upload({ address: { address, port } }: TestFiles, version: HttpVersion): Promise<unknown> {
  const [method, path] = ["PUT", "/uploads/a"];
  if (version === "2") {
    using connection = await openHttp2({ address, port });
    const stream: Duplex = connection.open({ httpMethod: method, path, header: [] }, { endStream: false });
    const [response] = await Promise.all([json(stream), pipeline(Readable.from(file()), stream, { end: true })]);
    return response;
  }
  const request = requestHttp({ host: address, port, method, path, agent: false });
  const response = new Promise<Readable>((resolve) => request.on("response", resolve));
  await pipeline(Readable.from(file()), request);
  return await json(await response);
}

describe.each<{ readonly name: string; readonly version: HttpVersion; readonly http2: Http2Server }>([
  { name: "HTTP/1.1", version: "1.1", http2: "listening" },
  { name: "HTTP/2", version: "2", http2: "listening" },
  { name: "mounted HTTP/2", version: "2", http2: "mounted" },
])("the memory of a server over $name", { timeout: 300_000 }, ({ version, http2 }) => {
  test("stays small during a large download", async () => {
    await using files = await startFiles(http2, {
      async *download(_, { responseHeader }) {
        responseHeader.set("content-length", String(fileBytes));
        for await (const data of file()) yield { data };
      },
    });
    const gauge = await Gauge.open();
    using response = await openResponse(files, version, "/downloads/a");
    for await (const bytes of response.body as AsyncIterable<Buffer>) await gauge.count(bytes.byteLength);
    expect(gauge.bytes).toBe(fileBytes);
    expect(gauge.mostBytes).toBeLessThan(maxHeldBytes);
  });

  test("stays small during a large upload", async () => {
    const gauge = await Gauge.open();
    await using files = await startFiles(http2, {
      async upload(pieces) {
        for await (const { file: sent } of pieces) await gauge.count(sent?.data.byteLength ?? 0);
        return { length: BigInt(gauge.bytes) };
      },
    });
    expect(await upload(files, version)).toEqual({ length: String(fileBytes) });
    expect(gauge.mostBytes).toBeLessThan(maxHeldBytes);
  });
});
