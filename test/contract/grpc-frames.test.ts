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
const uncompressedOnly = "the message is compressed, but the request names no encoding";
const notCompressed: Want = { code: "internal", message: uncompressedOnly };
const timedOut: Want = { code: "deadline_exceeded", message: "the operation timed out" };

const casesOf = (want: Want, bodies: Bodies, ...header: readonly Field[]) =>
  Object.entries(bodies).map(([name, body]) => ({ name, body, header, want }));

const deadlineCases = (wantOf: (text: string) => Want, ...texts: readonly string[]) =>
  texts.flatMap((text) => casesOf(wantOf(text), { [`a deadline of "${text}"`]: envelope }, ["grpc-timeout", text]));

const unknownEncoding = (...names: readonly string[]) => {
  const text = `unknown compression "${names.join(", ")}": supported encodings are gzip,br,zstd`;
  return casesOf(unimplemented(text), { [`the encoding "${names.join(", ")}"`]: envelope }, ...names.map(encoding));
};

// protoport/gateway/test/protocols/envelope, protocols/shared and protobuf/messages/binary cover the other envelopes,
// encodings and messages.
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
  ...unknownEncoding("lzma"), ...unknownEncoding("gzip", "gzip"),
  ...deadlineCases(() => deleted, "1M", "99999999H"), ...deadlineCases(() => timedOut, "0S"),
  ...deadlineCases((text) => invalid(`protocol error: invalid grpc timeout value: ${text}`), "999999999H", "1S, 2S", ""),
  ...casesOf(invalid("the message is not a valid plantstore.v1.DeletePlantRequest"), {
    "an end in the middle of a tag": encodeEnvelope(0, Buffer.of(0xff)),
    "the id as a string": encodeEnvelope(0, Buffer.of(10, 1, 0x37)) }),
];

const wires = wiresOf("grpc", "grpc-web");
const testCases = wires.flatMap((wire) => rowsFor(wire, wires, frameCases).map((testCase) => ({ ...testCase, wire })));

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
