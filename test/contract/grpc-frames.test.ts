import { gzipSync, brotliCompressSync, zstdCompressSync } from "node:zlib";
import { beforeEach, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import { encodeEnvelope } from "../../packages/testing/src/gateway/envelope.ts";
import type { Field } from "../../packages/testing/src/carriers/exchange.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { authorized } from "../support/server/plant-server.ts";
import { carriagesOf, rpcRequest } from "../../packages/testing/src/gateway/wire-format.ts";
import { deletePlantProcedure } from "../support/plants/delete-plant.ts";
import { expectedAnswer, seenAnswer, type Want } from "./expected-answer.ts";

interface Row {
  readonly name: string;
  readonly body: Uint8Array;
  readonly header: readonly Field[];
  readonly want: Want;
}

/** DeletePlantRequest{id: 7}. */
const message = Buffer.from([8, 7]);
const envelope = encodeEnvelope(0, message);
const compressed = 1;

const deleted: Want = { code: "ok" };
const cutShort: Want = { code: "invalid_argument", message: "the message is cut short" };
const tooLarge: Want = { code: "resource_exhausted", message: "message is larger than 65536 bytes" };
const oneMessage: Want = { code: "unimplemented", message: "a unary call takes one message" };
const notCompressed: Want = { code: "internal", message: "the message is compressed, but no encoding is named" };
const badGzip: Want = { code: "invalid_argument", message: "the message is not valid gzip" };
const badMessage: Want = {
  code: "invalid_argument",
  message: "the message is not a valid plantstore.v1.DeletePlantRequest",
};
const reserved = (flags: number): Want => ({
  code: "invalid_argument",
  message: `the message has reserved flags 0b${flags.toString(2)}`,
});

/** Rows of one outcome: bodies by their names. */
function comesTo(want: Want, bodies: Readonly<Record<string, Uint8Array>>, header: readonly Field[] = []): Row[] {
  return Object.entries(bodies).map(([name, body]) => ({ name, body, header, want }));
}

const envelopeRows: readonly Row[] = [
  ...comesTo(deleted, { "one message": envelope }),
  ...comesTo({ code: "unimplemented", message: "the message is missing" }, { "no message": Buffer.alloc(0) }),
  ...comesTo(cutShort, {
    "one byte of a prefix": envelope.subarray(0, 1),
    "four bytes of a prefix": envelope.subarray(0, 4),
    "a prefix without its message": envelope.subarray(0, 5),
    "half a message": envelope.subarray(0, 6),
    "a length beyond the message": encodeEnvelope(0, message, 1_000),
  }),
  ...comesTo(tooLarge, {
    "a length over the limit": encodeEnvelope(0, message, 65_537),
    "the largest length there is": encodeEnvelope(0, message, 0xffffffff),
    "a message over the limit": encodeEnvelope(0, Buffer.alloc(65_537)),
  }),
  ...comesTo(oneMessage, {
    "two messages": Buffer.concat([envelope, envelope]),
    "an empty second message": Buffer.concat([envelope, encodeEnvelope(0, Buffer.alloc(0))]),
    "a byte too many": Buffer.concat([envelope, Buffer.of(0)]),
  }),
  ...[0b10, 0b100, 0b10000000, 0b11111111].flatMap((flags) =>
    comesTo(reserved(flags), { [`flags 0b${flags.toString(2)}`]: encodeEnvelope(flags, message) }),
  ),
];

const encodingField = (name: string): Field => ["grpc-encoding", name];
const gzip = encodingField("gzip");
const packed = (bytes: Uint8Array): Buffer => encodeEnvelope(compressed, bytes);
const unknownEncoding = (name: string): Want => ({
  code: "unimplemented",
  message: `unknown compression "${name}": supported encodings are gzip,br,zstd`,
});

const compressionRows: readonly Row[] = [
  ...comesTo(deleted, { gzip: packed(gzipSync(message)), "gzip that is announced and not used": envelope }, [gzip]),
  ...comesTo(deleted, { brotli: packed(brotliCompressSync(message)) }, [encodingField("br")]),
  ...comesTo(deleted, { zstd: packed(zstdCompressSync(message)) }, [encodingField("zstd")]),
  ...comesTo(notCompressed, { "compression without an encoding": packed(message) }),
  ...comesTo(notCompressed, { "compression with the encoding that is none": packed(message) }, [
    encodingField("identity"),
  ]),
  ...comesTo(
    badGzip,
    {
      "gzip that is none": packed(message),
      "half of gzip": packed(gzipSync(message).subarray(0, 12)),
      "bytes after gzip": packed(Buffer.concat([gzipSync(message), message])),
    },
    [gzip],
  ),
  ...comesTo(tooLarge, { "a little gzip that grows beyond the limit": packed(gzipSync(Buffer.alloc(1_000_000))) }, [
    gzip,
  ]),
  ...comesTo(unknownEncoding("lzma"), { "an encoding that nobody knows": envelope }, [encodingField("lzma")]),
  ...comesTo(unknownEncoding("GZIP"), { "an encoding in upper case": envelope }, [encodingField("GZIP")]),
  ...comesTo(unknownEncoding("gzip, gzip"), { "an encoding twice": envelope }, [gzip, gzip]),
];

const messages: Readonly<Record<string, readonly number[]>> = {
  "an end in the middle of a tag": [0xff],
  "an end in the middle of a number": [8, 0x80],
  "a number of twelve bytes": [8, ...Array<number>(11).fill(0x80), 1],
  "field number 0": [0, 7],
  "a wire type that is none": [15, 7],
  "the end of a group that never began": [12],
  "a deep nest of groups": Array<number>(20_000).fill(0x13),
  "the id as a string": [10, 1, 0x37],
  "the id as a string that could be read as two fields": [10, 2, 0x38, 0x38],
  "a length for an id": [10, 7],
  "a byte for an id of eight": [9, 7],
  "a length beyond the end": [18, 0xff, 0xff, 0xff, 0xff, 0x0f],
};

const messageRows: readonly Row[] = Object.entries(messages).flatMap(([name, bytes]) =>
  comesTo(badMessage, { [name]: encodeEnvelope(0, Buffer.from(bytes)) }),
);

const timedOut: Want = { code: "deadline_exceeded", message: "the operation timed out" };
const badTimeout = (text: string): Want => ({
  code: "invalid_argument",
  message: `protocol error: invalid grpc timeout value: ${text}`,
});
const timeoutRow = (text: string, want: Want): Row[] =>
  comesTo(want, { [`a deadline of "${text}"`]: envelope }, [["grpc-timeout", text]]);

const timeoutRows: readonly Row[] = [
  ...["1M", "60S", "60000m", "60000000u", "99999999H"].flatMap((text) => timeoutRow(text, deleted)),
  ...["0S", "0n", "0H"].flatMap((text) => timeoutRow(text, timedOut)),
  ...["999999999H", "1", "S", "-1S", "+1S", "1s", "1.5S", "1 S", "0x1S", "1Sx", "1S, 2S", ""].flatMap((text) =>
    timeoutRow(text, badTimeout(text)),
  ),
];

const rows = [...envelopeRows, ...compressionRows, ...messageRows, ...timeoutRows].flatMap((row) =>
  carriagesOf("grpc", "grpc-web").map((carriage) => ({ ...row, carriage })),
);

describe("a gRPC call", () => {
  const plants = new Set<bigint>();
  const ask = askPlantServer({ store: openMemoryStore(plants) });
  beforeEach(() => plants.add(7n));

  test.each(rows)("with $name comes to $want.code, $carriage.name", async ({ body, header, want, carriage }) => {
    const { format, httpVersion } = carriage;
    const request = rpcRequest(format, message, [authorized, ...header], deletePlantProcedure);
    const answer = await ask(httpVersion, { ...request, body });
    const seen = seenAnswer(format, answer);
    const { "grpc-encoding": encoding, "grpc-accept-encoding": accepted, ...others } = seen.header;
    expect({ ...seen, header: others }).toStrictEqual(expectedAnswer(format, want));
    // Without a preference of the client, the answer is encoded as the request was.
    const sent = header.find(([name]) => name === "grpc-encoding")?.[1];
    const unknown = want.message?.startsWith("unknown compression") === true;
    expect(encoding).toBe(unknown || sent === "identity" ? undefined : sent);
    // gRPC's compression document: a client that sent an unknown encoding is told the known ones.
    expect(accepted).toBe(unknown ? "gzip,br,zstd" : undefined);
    expect(plants.has(7n)).toBe(want.code !== "ok");
  });
});
