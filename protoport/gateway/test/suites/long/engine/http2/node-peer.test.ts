import { createHash } from "node:crypto";
import { once } from "node:events";
// oxfmt-ignore
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders
} from "node:http2";
import { finished } from "node:stream/promises";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FrameFlag, SettingId } from "../../../../../src/engine/http2/frame-numbers.ts";
import { ErrorCode } from "../../../../../src/http/exchange/index.ts";
import { encodeBlock } from "../../../../../src/engine/http2/hpack/encoder.ts";
import type { Http2Stream } from "../../../../../src/engine/http2/http2-stream.ts";
import { within } from "@protoport/testing/process";
// oxfmt-ignore
import { type Engine, pipe, receiving, startEngine, statusBlock
} from "../../../../../../testing/src/http2/http2-engine.ts";

// nghttp2, through node's client, is an independent encoder and decoder. Both decide themselves when to use the dynamic
// table and Huffman coding.

type Fields = readonly (readonly [string, string])[];
const name = fc.stringMatching(/^x-[a-z0-9-]{1,12}$/);
const value = fc.oneof(
  fc.constantFrom("", "a", "application/grpc", "Bearer 0123456789"),
  fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/),
);
const fieldLists = fc.array(fc.tuple(name, value), { maxLength: 12 });

function nameInNode(prefix: string, ours: string): string {
  const words = ours === "http11Required" ? "http_1_1_required" : ours.replaceAll(/[A-Z]/g, "_$&");
  return `NGHTTP2_${prefix}${words.toUpperCase()}`;
}

test.each([
  { what: "error code", prefix: "", numbers: ErrorCode },
  { what: "setting", prefix: "SETTINGS_", numbers: SettingId },
  { what: "flag", prefix: "FLAG_", numbers: FrameFlag },
])("each $what has the same value as in nghttp2", ({ prefix, numbers }) => {
  const theirs = new Map(Object.entries<unknown>(constants));
  expect(numbers).toEqual(
    Object.fromEntries(Object.keys(numbers).map((ours) => [ours, theirs.get(nameInNode(prefix, ours))])),
  );
});

let engine: Engine;
let session: ClientHttp2Session;
let requested: string[] = [];
let respond: (stream: Http2Stream) => void = pipe;

beforeEach(async () => {
  requested = [];
  respond = pipe;
  engine = await startEngine({
    serve: (stream, head) => {
      requested = head.fields.filter((_, i, all) => all[i - (i % 2)]?.startsWith("x-"));
      respond(stream);
    },
  });
  session = connect(`http://${engine.address.address}:${String(engine.address.port)}`);
  session.on("error", () => {});
});

afterEach(async () => {
  session.destroy();
  await engine[Symbol.asyncDispose]();
});

test("a node:http2 client exchanges header fields with the engine in many calls", async () => {
  const property = fc.asyncProperty(fieldLists, fieldLists, fieldLists, async (sent, header, trailer) => {
    respond = (stream) => {
      stream.receiver = receiving(stream);
      stream.sendHeaders([statusBlock(200), encodeBlock(header.flat())], false);
      stream.end(Buffer.from("x"), encodeBlock([...trailer.flat(), "x-end", "1"]));
    };
    const received = await fieldsOf(session.request([":path", "/", ...sent.flat()], { endStream: true }));
    expect(requested).toStrictEqual(sent.flat());
    expect(received.header.filter(([field]) => field.startsWith("x-"))).toStrictEqual(header);
    expect(received.trailer).toStrictEqual([...trailer, ["x-end", "1"]]);
  });
  await fc.assert(property, { numRuns: 150 });
});

test("a node:http2 client gets an echoed body of 12 MB unchanged", async () => {
  const stream = session.request({ ":method": "POST", ":path": "/" });
  const received = createHash("sha256");
  const sent = createHash("sha256");
  stream.on("data", (piece: Buffer) => received.update(piece));
  for (let i = 0; i < 12; i++) {
    const piece = Buffer.alloc(1_000_000, `${String(i)} of 12`);
    sent.update(piece);
    if (!stream.write(piece)) await within(once(stream, "drain"), "the drain event");
  }
  stream.end();
  await within(finished(stream), "the end of the response");
  expect(received.digest("hex")).toBe(sent.digest("hex"));
});

test("a node:http2 client gets a header that requires several frames", async () => {
  const long = ["a", "b", "c"].map((letter) => [`x-${letter}`, letter.repeat(15_000)] as const);
  respond = (stream) => {
    stream.receiver = receiving(stream);
    stream.sendHeaders([statusBlock(200), encodeBlock(long.flat())], true);
  };
  session.settings({ maxHeaderListSize: 100_000 });
  const { header } = await fieldsOf(session.request([":path", "/"], { endStream: true }));
  expect(header.filter(([field]) => field.startsWith("x-"))).toStrictEqual(long);
});

test("a node:http2 client gets an informational response before the final response", async () => {
  respond = (stream) => {
    stream.receiver = receiving(stream);
    stream.sendHeaders([statusBlock(103), encodeBlock(["link", "</style.css>"])], false);
    stream.sendHeaders([statusBlock(204)], true);
  };
  const stream = session.request([":path", "/"], { endStream: true });
  const hints: unknown[] = [];
  stream.on("headers", (hint: IncomingHttpHeaders) => hints.push(hint["link"]));
  expect((await fieldsOf(stream)).header).toContainEqual([":status", "204"]);
  expect(hints).toStrictEqual(["</style.css>"]);
});

async function fieldsOf(stream: ClientHttp2Stream): Promise<{ readonly header: Fields; readonly trailer: Fields }> {
  let header: Fields = [];
  let trailer: Fields = [];
  stream.on("response", (_header, _flags, raw: string[]) => (header = pairsOf(raw)));
  stream.on("trailers", (_trailer: unknown, _flags: number, raw: string[]) => (trailer = pairsOf(raw)));
  stream.resume();
  await within(finished(stream), "the end of the response");
  return { header, trailer };
}

function pairsOf(raw: readonly string[]): Fields {
  return raw.flatMap((field, i) => (i % 2 === 0 ? [[field, raw[i + 1] ?? ""] as const] : []));
}
