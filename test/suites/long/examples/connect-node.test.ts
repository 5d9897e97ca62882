import { once } from "node:events";
import type { Http2SecureServer } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createConnectNodeServer } from "../../../../examples/connect-node.ts";
import { Readiness } from "@protoport/gateway/health";
import { silentLog } from "@protoport/telemetry/logs";
import { codes } from "../../../contract/expected-response.ts";
import { type Situation, situations } from "../../../contract/situations.ts";
// oxfmt-ignore
import { type Address, createCertificate, fieldValue, type HttpRequest, type HttpResponse, type HttpVersion, openHttp1,
  openHttp2, readOutcome, readWebTrailer, shared, type WireFormat, wires } from "@protoport/testing";
import { openSituationStore, secretText } from "../../../support/plants/index.ts";
import { testVerifier } from "../../../support/server/plant-server.ts";

const certificate = createCertificate("localhost");
const client = { ca: certificate.cert, servername: "localhost" };

// connect-node does not serve gRPC-Web's text form; REST goes to the gateway.
const testCases = situations.deletePlant
  .flatMap((situation) =>
    wires
      .filter(({ format }) => situation.formats?.includes(format.name) ?? true)
      .filter(({ format }) => format.name !== "grpc-web-text")
      .map((wire) => ({ situation, wire })),
  )
  // Node's HTTP parser keeps the first of several Authorization fields, and drops the others.
  .filter(({ situation, wire: { format } }) => format.protocol === "rest" || !hasTwoCredentials(situation, format))
  .map((row, index) => ({ ...row, plant: BigInt(index + 1) }));

function hasTwoCredentials({ request }: Situation, format: WireFormat): boolean {
  return request(format, 1n).header.filter(([name]) => name === "authorization").length > 1;
}

describe("the plant store on connect-node", () => {
  const plants = new Set(testCases.map(({ plant }) => plant));
  let server: Http2SecureServer;
  let address: Address;

  beforeAll(async () => {
    server = createConnectNodeServer(
      { store: openSituationStore(plants), verifier: testVerifier, readiness: new Readiness({}), log: silentLog },
      certificate,
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("the server has no port");
    address = bound;
  });

  afterAll(() => void server.close());

  // Reused, because a TLS handshake takes longer than most of these calls.
  const http2 = shared(() => openHttp2(address, client));

  async function exchange(version: HttpVersion, request: HttpRequest): Promise<HttpResponse> {
    if (version === "2") return await http2.exchange(request);
    using connection = await openHttp1(address, client);
    connection.request(request);
    return await connection.readResponse(request.httpMethod);
  }

  test.each(testCases)("$situation.name over $wire.name", async ({ wire, situation, plant }) => {
    const { format, httpVersion } = wire;
    const { code, message = "", fields = {} } = situation.want;
    const response = await exchange(httpVersion, situation.request(format, plant));
    expect(readOutcome(format, response)).toEqual({ code: codes[code].number, message });
    const trailer = format.protocol === "grpc-web" ? readWebTrailer(format, response) : response.trailer;
    const received = [...response.header, ...trailer];
    for (const [name, value] of Object.entries(fields)) expect(fieldValue(received, name)).toBe(value);
    expect(JSON.stringify([response.header, response.body.toString("latin1")])).not.toContain(secretText);
    expect(plants.has(plant)).toBe(code !== "ok");
  });
});
