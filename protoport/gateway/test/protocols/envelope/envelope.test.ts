import { Code } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Envelope, EnvelopeReader, envelopePrefix, readSingleEnvelope, writeEnvelope
} from "../../../src/protocols/envelope/envelope.ts";
import { readMessages } from "../../../src/protocols/envelope/message-splitter.ts";
import { collect, collectGarbage } from "@protoport/testing/process";
import { costRatio } from "../../../../testing/src/cost-ratio.ts";

const limitBytes = 10;
const bytes = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);

test("the prefix of a message contains the length in network byte order", () =>
  expect([...envelopePrefix(0x01020304)]).toEqual([0, 1, 2, 3, 4]));

test.each([
  ["an empty message", bytes(0, 0, 0, 0, 0), false, []],
  ["a message", bytes(0, 0, 0, 0, 2, 7, 8), false, [7, 8]],
  ["a compressed message", bytes(1, 0, 0, 0, 1, 9), true, [9]],
  ["a message of exactly the limit", bytes(0, 0, 0, 0, 10, ...Buffer.alloc(10)), false, [...Buffer.alloc(10)]],
])("readSingleEnvelope %s is accepted", (_name, input, compressed, message) => {
  const envelope = readSingleEnvelope(input, limitBytes);
  expect([envelope.compressed, [...envelope.bytes]]).toEqual([compressed, message]);
});

test.each([
  { name: "an empty body", input: bytes(), code: Code.Unimplemented },
  { name: "a truncated prefix", input: bytes(0, 0, 0, 0), code: Code.InvalidArgument },
  { name: "a truncated message", input: bytes(0, 0, 0, 0, 2, 7), code: Code.InvalidArgument },
  { name: "a second message", input: bytes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), code: Code.Unimplemented },
  { name: "a byte after the message", input: bytes(0, 0, 0, 0, 1, 7, 8), code: Code.Unimplemented },
  { name: "a reserved flag", input: bytes(0b10, 0, 0, 0, 0), code: Code.InvalidArgument },
  { name: "the flag of Connect's end of stream", input: bytes(0b11, 0, 0, 0, 0), code: Code.InvalidArgument },
  { name: "the flag of gRPC-Web's trailer", input: bytes(0x80, 0, 0, 0, 0), code: Code.InvalidArgument },
  { name: "a length over the limit", input: bytes(0, 0, 0, 0, 11), code: Code.ResourceExhausted },
  { name: "a length of 2^31", input: bytes(0, 0x80, 0, 0, 0), code: Code.ResourceExhausted },
  { name: "the largest possible length", input: bytes(0, 255, 255, 255, 255), code: Code.ResourceExhausted },
])("readSingleEnvelope $name is refused", ({ input, code }) => {
  expect(() => readSingleEnvelope(input, limitBytes)).toThrow(expect.objectContaining({ code }));
});

test("readSingleEnvelope reads the output of writeEnvelope", () =>
  fc.assert(
    fc.property(fc.uint8Array(), fc.boolean(), (message, compressed) => {
      const written = writeEnvelope(compressed ? 1 : 0, message);
      expect(written.byteLength).toBe(5 + message.byteLength);
      const read = readSingleEnvelope(written, message.byteLength);
      expect([read.compressed, Buffer.from(read.bytes).equals(message)]).toEqual([compressed, true]);
    }),
  ));

describe("EnvelopeReader", () => {
  test("reads every message wherever the stream is split", async () => {
    const messages = fc.array(fc.uint8Array({ maxLength: limitBytes }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(messages, fc.array(fc.nat({ max: 100 })), async (input, cuts) => {
        const stream = Buffer.concat(input.map((message) => writeEnvelope(0, message)));
        const read = await collect(readAll(cutAt(stream, cuts), limitBytes));
        expect(read).toEqual(input.map((message) => Buffer.from(message)));
      }),
    );
  });

  test.each([
    { name: "a truncated prefix", input: [bytes(0, 0, 0), bytes(0)], code: Code.InvalidArgument },
    { name: "a truncated message", input: [bytes(0, 0, 0, 0, 2), bytes(7)], code: Code.InvalidArgument },
    { name: "a length over the limit", input: [bytes(0, 0, 0), bytes(0, 11)], code: Code.ResourceExhausted },
    { name: "the largest possible length", input: [bytes(0, 255, 255, 255, 255)], code: Code.ResourceExhausted },
    { name: "reserved flags", input: [bytes(0b10, 0, 0, 0, 0)], code: Code.InvalidArgument },
  ])("refuses $name after a complete message", async ({ input: [first = bytes(), ...others], code }) => {
    const messages = readAll([bytes(0, 0, 0, 0, 1, 7, ...first), ...others], limitBytes)[Symbol.asyncIterator]();
    expect(await messages.next()).toEqual({ done: false, value: Buffer.of(7) });
    await expect(messages.next()).rejects.toMatchObject({ code });
  });

  test("refuses a message over the limit that is read in parts", () => {
    const readPrefix = (bytesInMessage: number): Buffer | Promise<Buffer> | undefined => {
      const reader = new EnvelopeReader(100_000, messageOf, (part) => Buffer.from(part));
      reader.add(envelopePrefix(bytesInMessage));
      return reader.take();
    };
    expect(readPrefix(100_000)).toEqual(Buffer.from(envelopePrefix(100_000)));
    expect(() => readPrefix(100_001)).toThrow(expect.objectContaining({ code: Code.ResourceExhausted }));
  });

  test("refuses a stream that ends within a message read in parts", () => {
    const reader = new EnvelopeReader(100_000, messageOf, (part) => Buffer.from(part));
    reader.add(envelopePrefix(100_000));
    expect(reader.take()).toEqual(Buffer.from(envelopePrefix(100_000)));
    reader.add(new Uint8Array(99_999));
    expect(reader.take()).toHaveLength(99_999);
    expect(() => reader.end()).toThrow(expect.objectContaining({ code: Code.InvalidArgument }));
    reader.add(new Uint8Array(1));
    expect(reader.take()).toHaveLength(1);
    expect(() => reader.end()).not.toThrow();
  });

  test.each([
    { name: "ends at the end of a message", octets: [0, 0, 0, 0, 1, 7] },
    { name: "ends within a prefix", octets: [0, 0, 0, 0, 1, 7, 0, 0] },
    { name: "ends within a message", octets: [0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 2, 8] },
  ])("releases a chunk that $name while it waits for more", async ({ octets }) => {
    const reader = new EnvelopeReader(limitBytes, messageOf);
    const readPiece = (): WeakRef<Uint8Array> => {
      const piece = bytes(...octets);
      reader.add(piece);
      return new WeakRef(piece);
    };
    const piece = readPiece();
    expect([reader.take(), reader.take()]).toEqual([Buffer.of(7), undefined]);
    // A WeakRef keeps its target until the turn that created it ends.
    await new Promise(setImmediate);
    collectGarbage();
    expect([piece.deref(), reader.take()]).toEqual([undefined, undefined]);
  });

  test("reads long messages as fast per byte as short ones", async () => {
    const read = (stream: Buffer) => {
      const octets = Array.from(stream, (octet) => bytes(octet));
      return async () => {
        for await (const message of readAll(octets, stream.byteLength)) expect(message.byteLength).not.toBe(0);
      };
    };
    const long = Buffer.from(writeEnvelope(0, Buffer.alloc(32_000)));
    const short = Buffer.concat(Array.from({ length: 128 }, () => writeEnvelope(0, Buffer.alloc(245))));
    expect(await costRatio(read(long), read(short), 3)).toBeLessThan(4);
  });
});

const readAll = (pieces: readonly Uint8Array[], readMaxBytes: number): AsyncIterable<Buffer> =>
  readMessages(from(pieces), new EnvelopeReader(readMaxBytes, messageOf));

const messageOf = ({ bytes: message }: Envelope): Buffer => Buffer.from(message);

function cutAt(stream: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set([...cuts.map((cut) => cut % (stream.byteLength + 1)), stream.byteLength])].toSorted(
    (a, b) => a - b,
  );
  return ends.map((end, at) => stream.subarray(ends[at - 1] ?? 0, end));
}

async function* from(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}
