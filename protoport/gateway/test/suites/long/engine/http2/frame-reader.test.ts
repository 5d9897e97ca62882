import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FrameReader } from "../../../../../src/engine/http2/frame-reader.ts";
import type { Http2Limits } from "../../../../../src/engine/http2/http2-limits.ts";
import { costRatio } from "../../../../../../testing/src/cost-ratio.ts";
import { Dice, numRunsOf, within } from "@protoport/testing/process";
import { echo, pipe, serveConnection } from "../../../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, frame, frameBytes, frameFlag, frameType, headersFrame, resetFrame
} from "@protoport/testing/http";
// oxfmt-ignore
import { begun, getBlock, postHeader, settingFrame, uint32, whole, windowUpdateFrame
} from "../../../../../../testing/src/http2/http2-requests.ts";
import { randomFrame } from "../../../../../../testing/src/http2/random-frame.ts";

// A connection with all kinds of frames, which ends with an error.
const recorded: Buffer = Buffer.concat([
  clientPreface,
  ...[
    settingFrame(4, 5),
    frame(frameType.settings, frameFlag.ack, 0),
    begun(1),
    whole(3),
    dataFrame(1, Buffer.from("a body")),
    frame(frameType.data, frameFlag.padded, 1, Buffer.from("\x03 that is padded\0\0\0")),
    frame(frameType.headers, frameFlag.endStream, 5, getBlock.subarray(0, 10)),
    frame(frameType.continuation, 0, 5, getBlock.subarray(10, 11)),
    frame(frameType.continuation, frameFlag.endHeaders, 5, getBlock.subarray(11)),
    // One field twice, with the dynamic table.
    frame(
      frameType.headers,
      frameFlag.endHeaders | frameFlag.endStream,
      7,
      Buffer.concat([getBlock, Buffer.from("\x40\x01a\x01b")]),
    ),
    frame(
      frameType.headers,
      frameFlag.endHeaders | frameFlag.endStream,
      9,
      Buffer.concat([getBlock, Buffer.from([0xbe])]),
    ),
    headersFrame(11, postHeader(["Upper", "case"])),
    begun(13),
    resetFrame(13, 8),
    frame(frameType.priority, 0, 1, Buffer.concat([uint32(0), Buffer.from([7])])),
    frame(0x77, 0x77, 0, Buffer.from("nobody knows")),
    windowUpdateFrame(1, 3),
    windowUpdateFrame(0, 1000),
    settingFrame(4, 100),
    dataFrame(1, Buffer.alloc(0), frameFlag.endStream),
    frame(frameType.ping, 0, 0, Buffer.from("12345678")),
    frame(frameType.resetStream, 0, 99, uint32(8)),
  ].map(frameBytes),
]);

/** Returns the engine's output for a connection in these chunks. */
async function replyTo(
  chunks: readonly Buffer[],
  serve: typeof echo,
  limits: Partial<Http2Limits> = {},
): Promise<Buffer> {
  // The window is never full. Otherwise the timing of the next chunk would determine whether a response is queued.
  const [client, server]: Duplex[] = duplexPair({ highWaterMark: 2 ** 30 });
  if (client === undefined || server === undefined) throw new Error("there is no pair");
  serveConnection(server, { serve, limits });
  const reply: Buffer[] = [];
  client.on("data", (bytes: Buffer) => reply.push(bytes));
  for (const chunk of chunks) {
    client.write(chunk);
    // Waits one turn per chunk, so that each is read separately.
    await nextTurn();
  }
  client.end();
  if (!client.readableEnded) await within(once(client, "end"), "the end of the connection");
  client.destroy();
  server.destroy();
  return Buffer.concat(reply);
}

test("the output does not depend on where the input is split", async () => {
  const all = await replyTo([recorded], pipe);
  // The last frame is the GOAWAY for a reset on an idle stream, so everything before it was processed.
  expect(all.subarray(-8).toString("hex")).toBe("0000000d00000001");
  for (let at = 1; at < recorded.byteLength; at++) {
    const reply = await replyTo([recorded.subarray(0, at), recorded.subarray(at)], pipe);
    expect(reply.toString("hex"), `cut at ${String(at)}`).toBe(all.toString("hex"));
  }
});

test("the output for random frames does not depend on the input chunks", async () => {
  const seeds = fc.nat({ max: 2 ** 31 });
  const cuts = fc.array(fc.nat(), { maxLength: 12 });
  const property = fc.asyncProperty(seeds, cuts, fc.constantFrom(echo, pipe), async (seed, chosen, serve) => {
    const dice = new Dice(seed);
    const frames = Array.from({ length: 2 + dice.roll(30) }, () => randomFrame(dice));
    // A frame that announces more than it has is completed. If the connection ended within it, its chunks would
    // determine whether its header was processed.
    const rest = Buffer.alloc(16_384);
    const sent = Buffer.concat([clientPreface, frameBytes(frame(frameType.settings, 0, 0)), ...frames, rest]);
    const ends = [...chosen.map((cut) => cut % sent.byteLength), sent.byteLength].toSorted((a, b) => a - b);
    const chunks = ends.map((end, i) => sent.subarray(ends[i - 1] ?? 0, end));
    const [atOnce, inPieces] = [await replyTo([sent], serve), await replyTo(chunks, serve)];
    expect(outputOf(inPieces)).toEqual(outputOf(atOnce));
  });
  await fc.assert(property, { numRuns: numRunsOf(250) });
});

/** Returns a server's output, independent of how it splits bodies into frames and windows into updates. */
function outputOf(reply: Buffer): Output {
  const output: Output = { bodies: {}, windows: {}, others: [] };
  for (let at = 0, end = 0; at < reply.byteLength; at = end) {
    end = at + 9 + reply.readUIntBE(at, 3);
    const [type, flags, streamId] = [reply[at + 3], reply.readUInt8(at + 4), reply.readUInt32BE(at + 5)];
    if (type === frameType.data) {
      const ends = (flags & frameFlag.endStream) !== 0 ? " ends" : "";
      output.bodies[streamId] = `${output.bodies[streamId] ?? ""}${reply.toString("hex", at + 9, end)}${ends}`;
    } else if (type === frameType.windowUpdate) {
      output.windows[streamId] = (output.windows[streamId] ?? 0) + reply.readUInt32BE(at + 9);
    } else output.others.push(reply.toString("hex", at, end));
  }
  return output;
}

/** Bodies and windows by stream. */
interface Output {
  readonly bodies: Record<number, string>;
  readonly windows: Record<number, number>;
  readonly others: string[];
}

test("the output does not change if the input arrives octet by octet", async () => {
  const octets = Array.from(recorded, (octet) => Buffer.from([octet]));
  expect(await replyTo(octets, echo)).toStrictEqual(await replyTo([recorded], echo));
});

// Bodies on two streams, in frames of different lengths, some padded, and a field block in several frames.
const bodies: readonly Buffer[] = [
  ...[16_384, 9, 16_384, 4096, 0, 5000, 16_384].map((length, i) =>
    frameBytes(dataFrame(i % 2 === 0 ? 1 : 3, bytesFrom(i, length))),
  ),
  frameBytes(frame(frameType.data, frameFlag.padded, 1, Buffer.concat([Buffer.of(200), bytesFrom(7, 9000)]))),
  frameBytes(frame(frameType.ping, 0, 0, Buffer.from("12345678"))),
  frameBytes(frame(frameType.headers, frameFlag.endHeaders, 5, bytesFrom(10, 9000))),
  frameBytes(dataFrame(1, bytesFrom(8, 16_384), frameFlag.endStream)),
  frameBytes(dataFrame(3, bytesFrom(9, 10_000), frameFlag.endStream)),
];

/**
 * Returns bodies independent of their chunks. The result has their octets, the frames that end them, and the undivided
 * frames.
 */
function bodiesRead(chunkBytes: number): readonly [number, { readonly octets: string; readonly ends: number }][] {
  const read = new Map<number, { octets: string; ends: number }>();
  const reader = new FrameReader(
    {
      onFrame: ({ type, flags, streamId, bytes, from, length }) => {
        const body = read.get(streamId) ?? { octets: "", ends: 0 };
        expect(type === frameType.data && body.ends > 0).toBe(false);
        const isWhole = type !== frameType.data || (flags & frameFlag.padded) !== 0;
        body.octets += (isWhole ? `[${String(length)}]` : "") + bytes.toString("latin1", from, from + length);
        if (type === frameType.data && (flags & frameFlag.endStream) !== 0) body.ends++;
        read.set(streamId, body);
      },
    },
    clientPreface,
  );
  const sent = Buffer.concat([clientPreface, ...bodies]);
  for (let at = 0; at < sent.byteLength; at += chunkBytes) reader.read(sent.subarray(at, at + chunkBytes));
  return [...read];
}

test.each([1, 9, 24, 33, 1000, 4095, 4096, 4105, 8192, 12_297, 16_384, 16_393, 16_417, 32_768, 65_536])(
  "bodies in chunks of size %i are read unchanged",
  (chunkBytes) => expect(bodiesRead(chunkBytes)).toStrictEqual(bodiesRead(1_000_000)),
);

test.each([
  { name: "does not copy a part of 4 KiB", cuts: [4096], want: ["0: 4096", "1: 12288"] },
  { name: "copies a part below 4 KiB", cuts: [4095], want: ["copy: 16384"] },
  { name: "does not copy a payload that follows its header", cuts: [0], want: ["1: 16384"] },
  { name: "does not copy an octet that arrives last", cuts: [16_383], want: ["0: 16383", "1: 1"] },
  { name: "copies all parts after a small part", cuts: [5000, 5001, 12_000], want: ["0: 5000", "copy: 11384"] },
])("FrameReader $name", ({ cuts, want }) => {
  const sent = frameBytes(dataFrame(1, bytesFrom(1, 16_384)));
  const ends = [...cuts.map((cut) => cut + 9), sent.byteLength];
  const chunks = ends.map((end, i) => sent.subarray(ends[i - 1] ?? 0, end));
  const parts: string[] = [];
  const reader = new FrameReader(
    {
      onFrame: ({ bytes, length }) => {
        const chunk = chunks.indexOf(bytes);
        parts.push(`${chunk < 0 ? "copy" : String(chunk)}: ${String(length)}`);
      },
    },
    clientPreface,
  );
  for (const chunk of [clientPreface, ...chunks]) reader.read(chunk);
  expect(parts).toStrictEqual(want);
});

/** Returns octets that differ between frames. */
function bytesFrom(seed: number, length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, i) => seed * 31 + i * 7));
}

test("the cost of reading an octet does not depend on the frame length", async () => {
  const long = frameBytes(dataFrame(1, Buffer.alloc(16_384)));
  const short = Buffer.concat(Array.from({ length: 64 }, () => frameBytes(dataFrame(1, Buffer.alloc(247)))));
  expect(await costRatio(readOctets(long), readOctets(short))).toBeLessThan(4);
});

function readOctets(bytes: Buffer): () => void {
  const octets = Array.from(bytes, (octet) => Buffer.of(octet));
  return () => {
    const reader = new FrameReader({ onFrame: () => {} }, clientPreface);
    reader.read(clientPreface);
    for (const octet of octets) reader.read(octet);
  };
}
