import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { negotiateEncodings } from "../../../src/protocols/shared/message-encodings.ts";
import { brotli, gzip, zstd } from "../../../src/protocols/compression/index.ts";

describe("negotiateEncodings", () => {
  const available = [gzip, brotli, zstd];
  const negotiate = (sent: string | null, accepted: string | null): Record<string, string | undefined> => {
    const { request, response, problem } = negotiateEncodings(available, sent, accepted, "grpc-accept-encoding");
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
      const { problem, acceptEncodingFields } = negotiateEncodings(available, sent, null, "grpc-accept-encoding");
      expect(problem).toMatchObject({ code: Code.Unimplemented });
      expect(acceptEncodingFields).toEqual(["grpc-accept-encoding", "gzip,br,zstd"]);
    },
  );
});
