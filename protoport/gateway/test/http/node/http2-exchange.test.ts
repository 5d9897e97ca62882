import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { nodeEngine } from "../../../src/http/node/index.ts";
import { createCertificate } from "../../../../testing/src/http/certificate.ts";
import { type Field, fieldValue } from "../../../../testing/src/http/exchange.ts";
import { startOnLoopback } from "../../../../testing/src/http/listen-on-loopback.ts";
import { openHttp1 } from "../../../../testing/src/http/http1-connection.ts";
import { openHttp2, readHttp2Response } from "../../../../testing/src/http/http2-connection.ts";
import { startGreenhouse, type TestGreenhouse } from "../../../../testing/src/gateway/greenhouse.ts";
import { failingHooks, startOnNode } from "../../../../testing/src/gateway/on-node.ts";
import { within } from "../../../../testing/src/deadline.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";
const call = { httpMethod: "POST", path, header: [json], body: Buffer.from("{}") };

/** Counts the 100 (Continue) responses to a request. */
function countContinues(stream: ClientHttp2Stream): () => number {
  let count = 0;
  stream.on("continue", () => (count += 1));
  return () => count;
}

describe("Expect: 100-continue on node:http2", () => {
  test.each(["100-continue", "100-Continue"])("with %s gets 100 once before a body is read", async (expectation) => {
    await using greenhouse = await startOnNode({ waterBed: ({ note }) => ({ note }) });
    using connection = await openHttp2(greenhouse.address);
    const stream = connection.open({ ...call, header: [json, ["expect", expectation]] });
    const continues = countContinues(stream);
    await within(once(stream, "continue"), "100 (Continue)");
    stream.end("{}");
    expect(await readHttp2Response(stream)).toMatchObject({ httpStatus: 200 });
    expect(continues()).toBe(1);
  });

  test("gets no 100 if the body is not read", async () => {
    await using greenhouse = await startOnNode({});
    using connection = await openHttp2(greenhouse.address);
    const stream = connection.open({ ...call, path: "/nothing", header: [json, ["expect", "100-continue"]] });
    const continues = countContinues(stream);
    const responded = readHttp2Response(stream);
    await within(once(stream, "response"), "the response");
    stream.end("{}");
    expect(await responded).toMatchObject({ httpStatus: 404 });
    expect(continues()).toBe(0);
  });
});

test("on node:http2, a client gets no 100 Continue during its response", async () => {
  const http2 = nodeEngine.createHttp2Server({
    ...failingHooks().options,
    serve: (exchange) => {
      exchange.begin(200, []);
      exchange.body?.pieces();
      exchange.end();
    },
  });
  await using server = await startOnLoopback(createServer((socket) => void http2.take(socket)));
  using connection = await openHttp2(server.address);
  const stream = connection.open({ ...call, header: [json, ["expect", "100-continue"]] });
  const continues = countContinues(stream);
  const responded = readHttp2Response(stream);
  await within(once(stream, "response"), "the response");
  stream.end("{}");
  expect(await responded).toMatchObject({ httpStatus: 200, resetCode: 0 });
  expect(continues()).toBe(0);
  http2.close();
});

test("on node:http2, a response has the fields that CORS adds", async () => {
  const origin = "https://shop.example";
  await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { cors: { origins: [origin] } });
  using connection = await openHttp2(greenhouse.address);
  const response = await connection.exchange({ ...call, header: [json, ["origin", origin]] });
  expect(fieldValue(response.header, "access-control-allow-origin")).toBe(origin);
});

describe.each([
  { engine: "node's HTTP", start: startOnNode },
  { engine: "the HTTP engine", start: startGreenhouse },
])("the URL of a call on $engine", ({ start }) => {
  const certificate = createCertificate("url");
  const tls = { ca: certificate.cert, servername: "localhost" };

  /** Starts a greenhouse that collects the URLs of its calls. */
  async function startWithUrls(secure: boolean): Promise<{ greenhouse: TestGreenhouse; urls: readonly string[] }> {
    const urls: string[] = [];
    const waterBed = (_: object, { url }: { readonly url: string }): object => ({ bed: BigInt(urls.push(url)) });
    return { greenhouse: await start({ waterBed }, {}, secure ? { tls: certificate } : {}), urls };
  }

  test.each([
    { name: "HTTP/1.1", secure: false, target: path, url: "http://a:1/beds/7:water" },
    { name: "HTTP/1.1 over TLS", secure: true, target: path, url: "https://a:1/beds/7:water" },
    { name: "HTTP/1.1 with an absolute URL", secure: false, target: `http://b:2${path}`, url: `http://b:2${path}` },
  ])("over $name has the scheme and authority of the request", async ({ secure, target, url }) => {
    const { greenhouse, urls } = await startWithUrls(secure);
    await using _ = greenhouse;
    using connection = await openHttp1(greenhouse.address, secure ? tls : undefined);
    connection.request({ ...call, path: target, header: [json, ["host", "a:1"]] });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(urls).toEqual([url]);
  });

  test("has the scheme and authority of a request over HTTP/2 and TLS", async () => {
    const { greenhouse, urls } = await startWithUrls(true);
    await using _ = greenhouse;
    using connection = await openHttp2(greenhouse.address, tls);
    expect(await connection.exchange({ ...call, header: [json, [":authority", "a:1"]] })).toMatchObject({
      httpStatus: 200,
    });
    expect(urls).toEqual(["https://a:1/beds/7:water"]);
  });
});
