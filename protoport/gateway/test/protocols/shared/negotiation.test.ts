import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { brotli, gzip, zstd } from "../../../src/protocols/compression/index.ts";
// oxfmt-ignore
import { negotiateCoding, negotiateEncodings, readAccept, readContentCoding
} from "../../../src/protocols/shared/negotiation.ts";

const available = ["br", "zstd", "gzip"];

// oxfmt-ignore
test.each([
  { sent: null, want: undefined }, { sent: "", want: undefined }, { sent: "gzip", want: "gzip" },
  { sent: "x-gzip", want: "gzip" }, { sent: "GZIP", want: "gzip" }, { sent: "gzip, br", want: "br" },
  { sent: "gzip;q=1.0, br;q=0.5", want: "gzip" }, { sent: "gzip;q=0.5, br;q=0.5, zstd;q=0.6", want: "zstd" },
  { sent: "gzip;q=0", want: undefined }, { sent: "gzip;q=0.000", want: undefined }, { sent: "*", want: "br" },
  { sent: "*;q=0", want: undefined }, { sent: "gzip, *;q=0", want: "gzip" }, { sent: "br;q=0, *", want: "zstd" },
  { sent: "identity", want: undefined }, { sent: "identity, gzip;q=0.5", want: undefined },
  { sent: "identity;q=0.5, gzip", want: "gzip" }, { sent: "identity;q=0", want: undefined },
  { sent: "deflate, compress", want: undefined }, { sent: "gzip;q=2", want: undefined },
  { sent: "gzip;q=abc, br;q=0.1", want: "br" }, { sent: "gzip ; q=0.3 , , br", want: "br" },
  { sent: "__proto__, constructor", want: undefined }, { sent: `${"x,".repeat(15)}gzip`, want: "gzip" },
  { sent: `${"x,".repeat(16)}gzip`, want: undefined }, { sent: `${"x".repeat(1019)},gzip`, want: "gzip" },
  { sent: `${"x".repeat(1020)},gzip`, want: undefined },
])("negotiateCoding() returns $want for Accept-Encoding: $sent", ({ sent, want }) => {
  expect(negotiateCoding(sent, available.map((name) => ({ name })))?.name).toBe(want);
});

test("readAccept() omits items without a name", () =>
  expect(readAccept(", ;q=0.5, a;q=0.2").map(({ name }) => name)).toEqual(["a"]));

test.each([
  { sent: "identity", want: "identity" },
  { sent: "", want: "identity" },
  { sent: "gzip", want: "gzip" },
  { sent: " X-Gzip ", want: "gzip" },
  { sent: "identity, br", want: "br" },
  { sent: "gzip, gzip", want: undefined },
  { sent: "gzip, br", want: undefined },
  { sent: "compress", want: undefined },
  { sent: "gzip;q=1", want: undefined },
  { sent: `${",".repeat(15)}br`, want: "br" },
  { sent: `${",".repeat(16)}br`, want: undefined },
])("readContentCoding() returns $want for Content-Encoding: $sent", ({ sent, want }) => {
  expect(readContentCoding(sent, available)).toBe(want);
});

describe("negotiateEncodings", () => {
  const compressions = [gzip, brotli, zstd];
  const negotiate = (sent: string | null, accepted: string | null): Record<string, string | undefined> => {
    const { request, response, problem } = negotiateEncodings(compressions, sent, accepted, "grpc-accept-encoding");
    return { request: request?.name, response: response?.name, problem: problem?.rawMessage };
  };

  test.each([
    { sent: null, accepted: null, request: undefined, response: undefined },
    { sent: "identity", accepted: "", request: undefined, response: undefined },
    { sent: "", accepted: "gzip", request: undefined, response: "gzip" },
    { sent: "gzip", accepted: null, request: "gzip", response: "gzip" },
    { sent: "gzip", accepted: "identity", request: "gzip", response: undefined },
    { sent: "gzip", accepted: "zstd, gzip", request: "gzip", response: "zstd" },
    { sent: null, accepted: "deflate,br", request: undefined, response: "br" },
    { sent: null, accepted: "gzip;q=0, br;q=0.5", request: undefined, response: "br" },
    { sent: null, accepted: "gzip;q=0.1, br;q=1", request: undefined, response: "br" },
    { sent: null, accepted: "br;q=0.5, gzip;q=0.5", request: undefined, response: "br" },
    { sent: null, accepted: "identity,deflate,gzip", request: undefined, response: "gzip" },
    { sent: null, accepted: "identity, gzip;q=0.5", request: undefined, response: undefined },
    { sent: null, accepted: "br;q=0, *", request: undefined, response: "gzip" },
    { sent: null, accepted: "gzip;q=0.000", request: undefined, response: undefined },
    { sent: null, accepted: " GZIP ", request: undefined, response: "gzip" },
    { sent: null, accepted: "deflate", request: undefined, response: undefined },
    { sent: null, accepted: `${"x,".repeat(15)}gzip`, request: undefined, response: "gzip" },
    { sent: null, accepted: `${"x,".repeat(16)}gzip`, request: undefined, response: undefined },
  ])("chooses $response (sent: $sent, accepted: $accepted)", ({ sent, accepted, request, response }) => {
    expect(negotiate(sent, accepted)).toEqual({ request, response, problem: undefined });
  });

  test("chooses only from the compressions of the called RPC", () => {
    const responses = [[gzip], [], [brotli]].map(
      (enabled) => negotiateEncodings(enabled, null, "gzip, br", "grpc-accept-encoding").response?.name,
    );
    expect(responses).toEqual(["gzip", undefined, "br"]);
  });

  test.each(["deflate", "GZIP", "gzip, br", "constructor"])(
    "refuses the encoding %j and lists the supported ones",
    (sent) => {
      const { problem, acceptEncodingFields } = negotiateEncodings(compressions, sent, null, "grpc-accept-encoding");
      expect(problem).toMatchObject({ code: Code.Unimplemented });
      expect(acceptEncodingFields).toEqual(["grpc-accept-encoding", "gzip,br,zstd"]);
    },
  );
});
