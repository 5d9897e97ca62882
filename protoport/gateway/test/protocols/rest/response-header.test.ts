import { describe, expect, test } from "vitest";
import { toRestHeader } from "../../../src/protocols/rest/response-header.ts";

describe("toRestHeader()", () => {
  test("keeps metadata and converts trailers to header fields", () => {
    const header = new Headers([
      ["X-Cost", "1"],
      ["x-cost", "2"],
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
      ["Retry-After", "1"],
      ["Key-Bin", "QQ"],
      ["ETag", '"x"'],
    ]);
    const trailer = new Headers({ "X-Cost": "9", "X-Late": "3" });
    expect(toRestHeader(header, trailer)).toEqual([
      "etag",
      '"x"',
      "key-bin",
      "QQ",
      "retry-after",
      "1",
      "set-cookie",
      "a=1",
      "set-cookie",
      "b=2",
      "x-cost",
      "1, 2",
      "x-late",
      "3",
    ]);
  });

  test.each([
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Host",
    "Grpc-Status",
    "Grpc-Encoding",
    "Grpc-Anything",
    "Connect-Protocol-Version",
  ])("omits the %s field", (name) => {
    expect(toRestHeader(new Headers([[name, "x"]]), new Headers([[name, "x"]]))).toEqual([]);
  });

  test.each(["\u0001", "a\u007fb", "a\u001f"])(
    "omits the value %j because it contains a control character",
    (value) => {
      expect(toRestHeader(new Headers({ "x-cost": value }), new Headers({ "x-late": value }))).toEqual([]);
    },
  );

  test("keeps a tab and non-ASCII bytes in values", () => {
    expect(toRestHeader(new Headers({ "x-cost": "a\tb\u00e9" }))).toEqual(["x-cost", "a\tb\u00e9"]);
  });
});
