import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHttp1Exchange, createHttp2Exchange } from "../../../../conformance/runner/index.ts";
// oxfmt-ignore
import { describeRequest, corpusGroups, expectResponse, toRequest
} from "../../../../gateway/test/wire/corpus/corpus.ts";
import { type Http1Connection, type Http2Connection, openHttp1, openHttp2 } from "@protoport/testing/http";
import { buildLimitMs, waitLimitMs } from "@protoport/testing/process";
import type { GrpcServerProcess } from "../../../../testing/src/gateway/grpc-programs.ts";
import { echoFiles, echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { startProxy, type TestProxy } from "../../../../testing/src/gateway/proxy.ts";
import { allCases, byHand } from "../../../../testing/src/transcoding/all-cases.ts";
import { failures } from "../../../../testing/src/transcoding/failures.ts";

// Runs the gateway's REST test cases with a proxy in front of gRPC servers from other implementations.

const corpus = corpusGroups
  .flatMap((group) => group.cases)
  // The response to a message with 100 levels has 101 levels, more than protobuf readers accept.
  .filter((row) => row.rule !== "a path of 100 names")
  .map((row) => ({ ...row, requestLine: describeRequest(row) }));

/** Timeout in ms for thousands of requests, each on a separate connection, on a busy machine. */
const suiteLimitMs = 10 * waitLimitMs;

describe.each(echoServers)("a proxy in front of $name", ({ build, knownFailing }) => {
  const opened = new AsyncDisposableStack();
  let server: GrpcServerProcess;
  beforeAll(async () => void (server = opened.use(await startGrpcProgram(await build()))), buildLimitMs);
  afterAll(() => opened.disposeAsync());

  describe("the transcoding suite", () => {
    let proxy: TestProxy;
    beforeAll(async () => void (proxy = opened.use(await startProxy(server.address, echoFiles))));

    test("passes over HTTP/1.1", { timeout: suiteLimitMs }, async () => {
      expect(await failures(allCases, createHttp1Exchange(new URL(proxy.baseUrl)), knownFailing)).toEqual([]);
    });

    test("passes over HTTP/2", { timeout: suiteLimitMs }, async () => {
      expect(await failures(byHand, createHttp2Exchange(new URL(proxy.baseUrl)), knownFailing)).toEqual([]);
    });
  });

  describe("the transcoding corpus", () => {
    let http1: Http1Connection;
    let http2: Http2Connection;
    beforeAll(async () => {
      const { address } = opened.use(await startProxy(server.address, sinkFiles));
      http1 = opened.use(await openHttp1(address));
      http2 = opened.use(await openHttp2(address));
    });

    test.each(corpus.filter(({ only }) => only === undefined))(
      "passes over HTTP/1.1 ($rule: $requestLine)",
      async (row) => {
        const request = toRequest(row);
        http1.request(request);
        expectResponse(await http1.readResponse(request.httpMethod), row.want);
      },
    );

    test.each(corpus)("passes over HTTP/2 ($rule: $requestLine)", async (row) => {
      expectResponse(await http2.exchange(toRequest(row)), row.want);
    });
  });
});
