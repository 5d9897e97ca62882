import { gzipSync, brotliCompressSync, zstdCompressSync } from "node:zlib";
import { beforeEach, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import { encodeEnvelope, type Field, rowsFor, rpcRequest, wiresOf } from "@protoport/testing";
import { askPlantServer, authorized } from "../support/server/index.ts";
import { deletePlantProcedure } from "../support/plants/delete-plant.ts";
import { expectedResponse, actualResponse, type Want } from "./expected-response.ts";

type Bodies = Readonly<Record<string, Uint8Array>>;

/** DeletePlantRequest{id: 7}. */
const message = Buffer.from([8, 7]);
const envelope = encodeEnvelope(0, message);
const packed = (bytes: Uint8Array): Buffer => encodeEnvelope(1, bytes);
const encoding = (name: string): Field => ["grpc-encoding", name];
const gzip = encoding("gzip");

const deleted: Want = { code: "ok" };
const invalid = (text: string): Want => ({ code: "invalid_argument", message: text });
const unimplemented = (text: string): Want => ({ code: "unimplemented", message: text });
const truncated = invalid("the message is truncated");
const badGzip = invalid("the message is not valid gzip");
const tooLarge: Want = { code: "resource_exhausted", message: "the message is larger than 65536 bytes" };
const notCompressed: Want = {
  code: "internal",
  message: "the message is compressed, but the request names no encoding",
};
const timedOut: Want = { code: "deadline_exceeded", message: "the operation timed out" };

/** Returns test cases with the same outcome, for bodies by name. */
function casesOf(want: Want, bodies: Bodies, ...header: readonly Field[]) {
  return Object.entries(bodies).map(([name, body]) => ({ name, body, header, want }));
}

const deadlineCases = (wantOf: (text: string) => Want, ...texts: readonly string[]) =>
  texts.flatMap((text) => casesOf(wantOf(text), { [`a deadline of "${text}"`]: envelope }, ["grpc-timeout", text]));

const unknownEncoding = (...names: readonly string[]) => {
  const text = `unknown compression "${names.join(", ")}": supported encodings are gzip,br,zstd`;
  return casesOf(unimplemented(text), { [`the encoding "${names.join(", ")}"`]: envelope }, ...names.map(encoding));
};

// protoport/gateway/test/protocols/envelope and protoport/gateway/test/protocols/shared cover the other envelopes and
// encodings.
// oxfmt-ignore
const frameCases = [
  ...casesOf(deleted, { "one message": envelope }),
  ...casesOf(unimplemented("the message is missing"), { "no message": Buffer.alloc(0) }),
  ...casesOf(truncated, { "four bytes of a prefix": envelope.subarray(0, 4), "half a message": envelope.subarray(0, 6) }),
  ...casesOf(tooLarge, { "the largest possible length": encodeEnvelope(0, message, 0xffffffff),
    "a message over the limit": encodeEnvelope(0, Buffer.alloc(65_537)) }),
  ...casesOf(unimplemented("a unary call must have exactly one message"), {
    "two messages": Buffer.concat([envelope, envelope]), "an extra byte": Buffer.concat([envelope, Buffer.of(0)]) }),
  ...casesOf(invalid("the message has reserved flags 0b10"), { "flags 0b10": encodeEnvelope(0b10, message) }),
  ...casesOf(invalid("the message has reserved flags 0b10000000"), { "flags 0x80": encodeEnvelope(0x80, message) }),
  ...casesOf(deleted, { gzip: packed(gzipSync(message)), "gzip that is declared but not used": envelope }, gzip),
  ...casesOf(deleted, { brotli: packed(brotliCompressSync(message)) }, encoding("br")),
  ...casesOf(deleted, { zstd: packed(zstdCompressSync(message)) }, encoding("zstd")),
  ...casesOf(notCompressed, { "compression without an encoding": packed(message) }),
  ...casesOf(notCompressed, { "compression with the encoding identity": packed(message) }, encoding("identity")),
  ...casesOf(badGzip, { "truncated gzip": packed(gzipSync(message).subarray(0, 12)),
    "bytes after gzip": packed(Buffer.concat([gzipSync(message), message])) }, gzip),
  ...casesOf(tooLarge, {
    "a small gzip that decompresses beyond the limit": packed(gzipSync(Buffer.alloc(1_000_000))) }, gzip),
  ...unknownEncoding("lzma"), ...unknownEncoding("GZIP"), ...unknownEncoding("gzip", "gzip"),
  ...deadlineCases(() => deleted, "1M", "60S", "60000m", "60000000u", "99999999H"),
  ...deadlineCases(() => timedOut, "0S", "0n", "0H"),
  ...deadlineCases((text) => invalid(`protocol error: invalid grpc timeout value: ${text}`),
    "999999999H", "1", "S", "-1S", "+1S", "1s", "1.5S", "1 S", "0x1S", "1Sx", "1S, 2S", ""),
];

// oxfmt-ignore
const messages: Readonly<Record<string, readonly number[]>> = {
  "an end in the middle of a tag": [0xff], "an end in the middle of a number": [8, 0x80],
  "a number of twelve bytes": [8, ...Array<number>(11).fill(0x80), 1], "field number 0": [0, 7],
  "an invalid wire type": [15, 7], "the end of a group that was not started": [12],
  "deeply nested groups": Array<number>(20_000).fill(0x13), "the id as a string": [10, 1, 0x37],
  "the id as a string that resembles two fields": [10, 2, 0x38, 0x38], "a length for an id": [10, 7],
  "a single byte for a 64-bit id": [9, 7], "a length beyond the end": [18, 0xff, 0xff, 0xff, 0xff, 0x0f],
};
const badMessage = invalid("the message is not a valid plantstore.v1.DeletePlantRequest");
const messageCases = Object.entries(messages).flatMap(([name, bytes]) =>
  casesOf(badMessage, { [name]: encodeEnvelope(0, Buffer.from(bytes)) }),
);

const allCases = [...frameCases, ...messageCases];
const wires = wiresOf("grpc", "grpc-web");
const testCases = wires.flatMap((wire) => rowsFor(wire, wires, allCases).map((testCase) => ({ ...testCase, wire })));

describe("a gRPC call", () => {
  const plants = new Set<bigint>();
  const ask = askPlantServer({ store: openMemoryStore(plants) });
  beforeEach(() => plants.add(7n));

  test.each(testCases)(
    "with $name over $wire.name gets the $want.code status",
    async ({ body, header, want, wire }) => {
      const { format, httpVersion } = wire;
      const request = rpcRequest(format, message, [authorized, ...header], deletePlantProcedure);
      const response = actualResponse(format, await ask(httpVersion, { ...request, body }));
      const { "grpc-encoding": used, "grpc-accept-encoding": accepted, ...others } = response.header;
      expect({ ...response, header: others }).toStrictEqual(expectedResponse(format, want));
      // If the client states no preference, the response uses the request's encoding.
      const sent = header.find(([name]) => name === "grpc-encoding")?.[1];
      const unknown = want.message?.startsWith("unknown compression") === true;
      expect(used).toBe(unknown || sent === "identity" ? undefined : sent);
      // According to gRPC's compression document, a response to an unknown encoding lists the known ones.
      expect(accepted).toBe(unknown ? "gzip,br,zstd" : undefined);
      expect(plants.has(7n)).toBe(want.code !== "ok");
    },
  );
});
