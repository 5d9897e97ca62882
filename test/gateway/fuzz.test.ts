import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HttpAnswer, HttpRequest } from "../support/carriers/exchange.ts";
import { type Http1Connection, openHttp1 } from "../support/carriers/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../support/carriers/http2-connection.ts";
import { startKitchenSink, type TestGateway } from "../support/gateway/kitchen-sink.ts";
import { anyRequest, typedRequest } from "../support/gateway/rest-arbitrary.ts";
import { numRunsOf } from "../support/test-seed.ts";

const requestsPerProperty = numRunsOf(100);

let gateway: TestGateway;
let http2: Http2Connection;

beforeAll(async () => {
  gateway = await startKitchenSink();
  http2 = await openHttp2(gateway.address);
});

afterAll(async () => {
  http2[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

// What every answer is, whatever was asked: the client's fault at worst, which a method is that nobody knows, and told in
// JSON.
function expectMildAnswer(request: HttpRequest, answer: HttpAnswer): void {
  if (answer.httpStatus !== 501) expect(answer.httpStatus).toBeLessThan(500);
  expect(answer.httpStatus).toBeGreaterThanOrEqual(200);
  if (request.httpMethod === "HEAD") return;
  const json: unknown = JSON.parse(answer.body.toString("utf8"));
  if (answer.httpStatus >= 300) expect(json).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
}

// HTTP/1.1 with one connection for as long as the server keeps it.
class Http1Client {
  #connection: Http1Connection | undefined;

  async exchange(request: HttpRequest): Promise<HttpAnswer> {
    this.#connection ??= await openHttp1(gateway.address);
    this.#connection.request(request);
    const answer = await this.#connection.readAnswer(request.httpMethod);
    if (answer.header.some(([name, value]) => name === "connection" && value === "close")) this[Symbol.dispose]();
    return answer;
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }
}

describe("no request makes the gateway fail", () => {
  test("over HTTP/2", async () => {
    await fc.assert(
      fc.asyncProperty(anyRequest, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });

  test("whatever value a field is given", async () => {
    await fc.assert(
      fc.asyncProperty(typedRequest, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });

  test("over HTTP/1.1", async () => {
    using http1 = new Http1Client();
    const noSpace = anyRequest.filter((request) => !/[ \t]/.test(request.path));
    await fc.assert(
      fc.asyncProperty(noSpace, async (request) => expectMildAnswer(request, await http1.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });
});
