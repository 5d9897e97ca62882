import { request as requestHttp1 } from "node:http";
import { connect } from "node:http2";
import { type Duplex, Readable, Writable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import type { UploadRequest } from "../gen/files/v1/files_pb.ts";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import type { Address } from "../support/carriers/exchange.ts";
import { within } from "../support/deadline.ts";
import { startFiles } from "../support/gateway/files.ts";

// Bodies of bytes that are far larger than the memory that they may take.

const piece = Buffer.alloc(64 * 1024, "x");
const pieces = 16 * 1024;
const wholeBytes = pieces * piece.byteLength;
const heldBytesMax = 24 * 1024 * 1024;

/** Looks now and then at what is held. */
class Gauge {
  highest = 0;
  #looks = 0;
  #next = 0;

  async pass(bytes: number): Promise<void> {
    this.#next += bytes;
    if (this.#next < wholeBytes / 16) return;
    this.#next = 0;
    this.#looks += 1;
    this.highest = Math.max(this.highest, await heldBytes());
  }

  get looks(): number {
    return this.#looks;
  }
}

/** The body of a request, and that of its answer. */
interface Carried {
  readonly body: Writable;
  readonly answer: Promise<Readable>;
  readonly end: () => void;
}

const carriers: readonly { readonly name: string; readonly open: (at: Address, line: string) => Carried }[] = [
  {
    name: "HTTP/1.1",
    open: ({ address: host, port }, line) => {
      const [method, path] = line.split(" ");
      const request = requestHttp1({ host, port, method, path });
      const answer = new Promise<Readable>((resolve) => request.on("response", resolve));
      return { body: request, answer, end: () => void request.destroy() };
    },
  },
  {
    name: "HTTP/2",
    open: ({ address, port }, line) => {
      const [method, path] = line.split(" ");
      const session = connect(`http://${address}:${String(port)}`);
      const stream: Duplex = session.request({ ":method": method, ":path": path }, { endStream: false });
      return { body: stream, answer: Promise.resolve(stream), end: () => session.destroy() };
    },
  },
];

test.each(carriers)(
  "a gigabyte of bytes is uploaded in constant memory over $name",
  async ({ open }) => {
    const gauge = new Gauge();
    const upload = async (requests: AsyncIterable<UploadRequest>) => {
      let length = 0n;
      for await (const { file } of requests) {
        length += BigInt(file?.data.byteLength ?? 0);
        await gauge.pass(file?.data.byteLength ?? 0);
      }
      return { length };
    };
    await using files = await startFiles("own", { upload });
    const before = await heldBytes();
    const { body, answer, end } = open(files.address, "PUT /uploads/a");
    const sent = pipeline(Readable.from(repeatedly(piece, pieces)), body);
    const said = await within(answer.then(textOf), "the answer", 300_000);
    await sent.catch(() => undefined);
    end();
    expect(said).toBe(JSON.stringify({ length: String(wholeBytes) }));
    expect(gauge.looks).toBeGreaterThan(10);
    expect(gauge.highest - before).toBeLessThan(heldBytesMax);
  },
  180_000,
);

test.each(carriers)(
  "a gigabyte of bytes is downloaded in constant memory over $name",
  async ({ open }) => {
    const gauge = new Gauge();
    const download = async function* () {
      for (let at = 0; at < pieces; at += 1) {
        await gauge.pass(piece.byteLength);
        yield create(HttpBodySchema, { data: piece });
      }
    };
    await using files = await startFiles("own", { download });
    const before = await heldBytes();
    const { body, answer, end } = open(files.address, "GET /downloads/a");
    body.end();
    let length = 0;
    const counted = new Writable({
      write(bytes: Buffer, _encoding, done) {
        length += bytes.byteLength;
        done();
      },
    });
    await within(
      answer.then(async (bytes) => await pipeline(bytes, counted)),
      "the answer",
      120_000,
    );
    end();
    expect(length).toBe(wholeBytes);
    expect(gauge.looks).toBeGreaterThan(10);
    expect(gauge.highest - before).toBeLessThan(heldBytesMax);
  },
  180_000,
);

function* repeatedly(bytes: Buffer, times: number): Generator<Buffer> {
  for (let at = 0; at < times; at += 1) yield bytes;
}
