import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { createCertificate, type Field, openHttp1, openHttp2, startGreenhouse, type TestGreenhouse
} from "@protoport/testing";
import { serveWithHandler } from "../../../testing/src/gateway/serve-with-handler.ts";
import { createGateway } from "../../src/index.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";
const call = { httpMethod: "POST", path, header: [json], body: Buffer.from("{}") };

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
