import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { createCertificate, type Field, fieldValue, openGreenhouse, openHttp1, openHttp2, readHttp2Response,
  startGreenhouse, type TestGreenhouse, within } from "../../../../testing/src/index.ts";
import { serveWithHandler } from "../../../../testing/src/gateway/serve-with-handler.ts";
import { createGateway } from "../../../src/index.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";
const call = { httpMethod: "POST", path, header: [json], body: Buffer.from("{}") };

/** The handler in a server of node:http2, without `listen`. */
const mounted = { http2: "mounted" } as const;

/** Counts the 100 (Continue) responses to a request. */
function countContinues(stream: ClientHttp2Stream): () => number {
  let count = 0;
  stream.on("continue", () => (count += 1));
  return () => count;
}

describe("Expect: 100-continue on node:http2", () => {
  test("gets 100 once before a body is read", async () => {
    await using connection = await openGreenhouse(openHttp2, { waterBed: ({ note }) => ({ note }) }, {}, mounted);
    const stream = connection.open({ ...call, header: [json, ["expect", "100-continue"]] });
    const continues = countContinues(stream);
    await within(once(stream, "continue"), "100 (Continue)");
    stream.end("{}");
    expect(await readHttp2Response(stream)).toMatchObject({ httpStatus: 200 });
    expect(continues()).toBe(1);
  });

  test("gets no 100 if the body is not read", async () => {
    await using connection = await openGreenhouse(openHttp2, {}, {}, mounted);
    const stream = connection.open({ ...call, path: "/nothing", header: [json, ["expect", "100-continue"]] });
    const continues = countContinues(stream);
    const responded = readHttp2Response(stream);
    await within(once(stream, "response"), "the response");
    stream.end("{}");
    expect(await responded).toMatchObject({ httpStatus: 404 });
    expect(continues()).toBe(0);
  });
});

test("on node:http2, a response has the fields that CORS adds", async () => {
  const origin = "https://shop.example";
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { cors: { origins: [origin] } }, mounted);
  using connection = await openHttp2(greenhouse.address);
  const response = await connection.exchange({ ...call, header: [json, ["origin", origin]] });
  expect(fieldValue(response.header, "access-control-allow-origin")).toBe(origin);
});

describe.each([
  {
    name: "a handler in servers of node",
    create: (...options: Parameters<typeof createGateway>) => serveWithHandler(createGateway(...options)),
  },
  { name: "a listening gateway", create: createGateway },
])("the URL of a call of $name", ({ create }) => {
  const certificate = createCertificate("url");
  const tls = { ca: certificate.cert, servername: "localhost" };

  /** Starts a greenhouse that collects the URLs of its calls. */
  async function startWithUrls(secure: boolean): Promise<{ greenhouse: TestGreenhouse; urls: readonly string[] }> {
    const urls: string[] = [];
    const waterBed = (_: object, { url }: { readonly url: string }): object => ({ bed: BigInt(urls.push(url)) });
    return { greenhouse: await startGreenhouse({ waterBed }, {}, secure ? { tls: certificate } : {}, create), urls };
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
