import { expect, test } from "vitest";
import { encodeBlock, encodeStatus } from "../../../../src/gateway/http2/hpack/encoder.ts";

test.each([
  { name: "a field of the static table by its index", fields: ["accept-encoding", "gzip, deflate"], want: "90" },
  { name: "a name of the static table by its index", fields: ["age", "7"], want: "0f060137" },
  { name: "a name whose index needs two octets", fields: ["server", "x"], want: "0f270178" },
  { name: "a name that is in no table", fields: ["a", "b"], want: "0001610162" },
  { name: "a name in lower case", fields: ["A", "b"], want: "0001610162" },
  { name: "octets above ASCII", fields: ["a", "\xff"], want: "00016101ff" },
  { name: "an empty value", fields: ["a", ""], want: "00016100" },
  { name: "nothing", fields: [], want: "" },
])("the encoder writes $name", ({ fields, want }) => {
  expect(encodeBlock(fields).toString("hex")).toBe(want);
});

test.each([
  { name: "that is in the static table by its index", httpStatus: 204, want: "89" },
  { name: "that is not with the name's index", httpStatus: 418, want: "0803343138" },
])("the encoder writes a status $name", ({ httpStatus, want }) => {
  expect(encodeStatus(httpStatus).toString("hex")).toBe(want);
});

test.each([
  { name: "a line break in a value", fields: ["a", "b\r\nc: d"] },
  { name: "NUL in a value", fields: ["a", "\0"] },
  // Cut down to an octet it would be a line feed.
  { name: "a character that is no octet", fields: ["a", "\u010a"] },
  { name: "a space in a name", fields: ["a b", "c"] },
  { name: "an empty name", fields: ["", "c"] },
  { name: "a pseudo-header field", fields: [":status", "200"] },
  { name: "a name that only in lower case is one", fields: ["\u212a", "c"] },
  { name: "a field of the connection", fields: ["Transfer-Encoding", "chunked"] },
])("the encoder refuses $name (RFC 9113 §8.2)", ({ fields }) => {
  expect(() => encodeBlock(fields)).toThrow(TypeError);
});
