import { expect, test } from "vitest";
import { BlockEncoder, encodeBlock, encodeStatus, StableFields } from "../../../../src/engine/http2/hpack/encoder.ts";
import { HpackDecoder } from "../../../../src/engine/http2/hpack/decoder.ts";

test.each([
  { name: "a field in the static table", fields: ["accept-encoding", "gzip, deflate"], want: "90" },
  { name: "a name in the static table", fields: ["age", "7"], want: "0f060137" },
  { name: "a name with an index of two octets", fields: ["server", "x"], want: "0f270178" },
  { name: "a name that is not in the static table", fields: ["a", "b"], want: "0001610162" },
  { name: "an uppercase name in lowercase", fields: ["A", "b"], want: "0001610162" },
  { name: "non-ASCII octets", fields: ["a", "\xff"], want: "00016101ff" },
  { name: "an empty value", fields: ["a", ""], want: "00016100" },
  { name: "an empty list of fields", fields: [], want: "" },
])("encodeBlock encodes $name as in RFC 7541", ({ fields, want }) => {
  expect(encodeBlock(fields).toString("hex")).toBe(want);
});

test.each([
  { name: "in the static table", httpStatus: 204, want: "89" },
  { name: "outside the static table", httpStatus: 418, want: "0803343138" },
])("encodeStatus encodes a status $name as in RFC 7541", ({ httpStatus, want }) => {
  expect(encodeStatus(httpStatus).toString("hex")).toBe(want);
});

test.each([
  { name: "a line break in a value", fields: ["a", "b\r\nc: d"] },
  { name: "NUL in a value", fields: ["a", "\0"] },
  // Truncated to an octet, the character would be a line feed.
  { name: "a character above U+00FF", fields: ["a", "\u010a"] },
  { name: "a space in a name", fields: ["a b", "c"] },
  { name: "an empty name", fields: ["", "c"] },
  { name: "a pseudo-header field", fields: [":status", "200"] },
  { name: "a non-ASCII name whose lower case is ASCII", fields: ["\u212a", "c"] },
  { name: "a connection-specific field", fields: ["Transfer-Encoding", "chunked"] },
])("the encoder rejects $name (RFC 9113 §8.2)", ({ fields }) => expect(() => encodeBlock(fields)).toThrow(TypeError));

test.each([
  { name: "in one octet if it fits into the dynamic table", tableBytes: 100, bytes: 1 },
  { name: "completely if it does not fit into the dynamic table", tableBytes: 99, bytes: 71 },
])("a repeated field is encoded $name (RFC 7541 §4.1)", ({ tableBytes, bytes }) => {
  const encoder = new BlockEncoder();
  const stable = new StableFields(["x-a-b", "v".repeat(63)]);
  // After a size change, the table is empty.
  for (const maxBytes of [4096, tableBytes]) {
    encoder.applyTableSize(maxBytes);
    encoder.encode(stable);
  }
  expect(encoder.encode(stable)).toHaveLength(bytes);
});

test("the encoder caches a block until the dynamic table changes", () => {
  const encoder = new BlockEncoder();
  const decoder = new HpackDecoder(1000);
  const encode = (stable: StableFields): Uint8Array => {
    const block = encoder.encode(stable);
    expect(decoder.decode(Buffer.from(block), 0, block.byteLength).fields).toEqual(stable.fields);
    return block;
  };
  const one = new StableFields([":method", "POST", "x-a", "1"]);
  encoder.applyTableSize(4096);
  const [, second, third] = [one, one, one].map(encode);
  expect(third).toBe(second);
  encode(new StableFields(["x-b", "2"]));
  expect(encode(one)).not.toBe(second);
  encoder.applyTableSize(200);
  expect([one, one].map(encode)).not.toContain(third);
});

test("a block after a table size change starts with the update", () => {
  const encoder = new BlockEncoder();
  const stable = new StableFields([":method", "POST", "x-a", "1"]);
  encoder.applyTableSize(4096);
  const [, cached, repeated] = [stable, stable, stable].map((fields) => encoder.encode(fields));
  expect(repeated).toBe(cached);
  encoder.applyTableSize(200);
  const block = Buffer.from(encoder.encode(stable)).toString("hex");
  // RFC 7541 §4.2: first the sizes 0 and 200. The table is then empty, so the field is a literal.
  expect(block).toBe("203fa901834003782d610131");
});

test.each([
  { name: "a connection-specific field", fields: [":method", "POST", "connection", "close"] },
  { name: "a line break in a pseudo-header field", fields: [":path", "/\r\n"] },
])("StableFields rejects $name with a TypeError", ({ fields }) => {
  expect(() => new StableFields(fields)).toThrow(TypeError);
});
