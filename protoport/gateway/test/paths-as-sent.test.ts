import { createServer, type IncomingMessage, request } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createMcp } from "../src/mcp/index.ts";
// oxfmt-ignore
import { createTestGateway, getReadingProcedure, type HttpRequest, listenOnLoopback, openEveryTransport, postMcp,
  shared, transportNames, waysFor } from "@protoport/testing";

// In front of a mounted gateway, middleware may guard paths, and compares them as they were sent.

const selector = "greenhouse.v1.GreenhouseService.GetReading";
const get = (value: string) => ({ pattern: { case: "get", value } }) as const;
const paths = ["/v1/me", "/v1/{sensor}", "/caf%c3%a9/a%40b/{sensor}", "/files/{sensor=shelves/**/end}:show"];
const gateways = shared(() =>
  openEveryTransport({
    mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
    rest: { rules: [{ selector, ...get("/sensors/{sensor}/reading"), additionalBindings: paths.map(get) }] },
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: ({ sensor }) => ({ sensor: sensor === "" ? "nothing" : sensor }),
        waterBed: ({ bed }) => ({ bed }),
      }),
  }),
);

/** The response: its status, or the sensor or the bed that the RPC got. */
type Row = { readonly path: string; readonly mounted: number | string; readonly standalone: number | string };

const rows: readonly Row[] = [
  { path: "/sensors/palm/reading", mounted: "palm", standalone: "palm" },
  { path: "/s%65nsors/palm/reading", mounted: 404, standalone: "palm" },
  { path: "/sensors/palm/%72eading", mounted: 404, standalone: "palm" },
  { path: "/sensors/p%61lm/reading", mounted: "palm", standalone: "palm" },
  { path: "/sensors/a%2Fb%3A/reading", mounted: "a/b:", standalone: "a/b:" },
  { path: "//sensors/palm/reading", mounted: 404, standalone: 404 },
  { path: "/sensors//palm/reading", mounted: 404, standalone: 404 },
  { path: "/sensors/palm/reading/", mounted: 404, standalone: 404 },
  { path: "/Sensors/palm/reading", mounted: 404, standalone: 404 },
  { path: "/sensors%2Fpalm/reading", mounted: 404, standalone: 404 },
  { path: "/v1/me", mounted: "nothing", standalone: "nothing" },
  { path: "/v1/m%65", mounted: "me", standalone: "nothing" },
  { path: "/caf%C3%A9/a@b/x", mounted: "x", standalone: "x" },
  { path: "/caf%c3%a9/a@b/x", mounted: 404, standalone: "x" },
  { path: "/caf%C3%A9/a%40b/x", mounted: 404, standalone: "x" },
  { path: "/files/shelves/%31/end:show", mounted: "shelves/1/end", standalone: "shelves/1/end" },
  { path: "/files/sh%65lves/1/end:show", mounted: 404, standalone: "shelves/1/end" },
  { path: "/files/shelves/1/%65nd:show", mounted: 404, standalone: "shelves/1/end" },
  { path: "/files/shelves/1/end:%73how", mounted: 404, standalone: "shelves/1/end" },
  { path: "/files/shelves/1/end%3Ashow", mounted: 404, standalone: 404 },
];

const calls: readonly Row[] = [
  { path: "/beds/7:water", mounted: "7", standalone: "7" },
  { path: "/b%65ds/7:water", mounted: 404, standalone: "7" },
  { path: "/beds/%37:water", mounted: "7", standalone: "7" },
  { path: "/beds/7:w%61ter", mounted: 404, standalone: "7" },
  { path: "/beds/7%3Awater", mounted: 404, standalone: 404 },
  { path: getReadingProcedure, mounted: "nothing", standalone: "nothing" },
  { path: getReadingProcedure.replace("Get", "G%65t"), mounted: 404, standalone: 404 },
  { path: `/${getReadingProcedure}`, mounted: 404, standalone: 404 },
];

const json = [["content-type", "application/json"]] as const;

describe.each(waysFor(transportNames))("paths over %s", (transport) => {
  const isMounted = transport.startsWith("a handler");

  async function ask(sent: HttpRequest): Promise<number | string> {
    const { httpStatus, body } = await gateways.ask(transport, sent);
    if (httpStatus !== 200) return httpStatus;
    const { sensor, bed }: { sensor?: string; bed?: string } = JSON.parse(String(body));
    return sensor ?? bed ?? 200;
  }

  const expected = ({ path, ...want }: Row) => ({ path, want: want[isMounted ? "mounted" : "standalone"] });

  test.each(rows.map(expected))('GET $path gets the status or path variable "$want"', async ({ path, want }) => {
    expect(await ask({ httpMethod: "GET", path, header: [] })).toBe(want);
  });

  test.each(calls.map(expected))('POST $path gets the status or path variable "$want"', async ({ path, want }) => {
    expect(await ask({ httpMethod: "POST", path, header: json, body: Buffer.from("{}") })).toBe(want);
  });

  test("a wrong method gets 405 only if the path matches", async () => {
    expect(await ask({ httpMethod: "PUT", path: "/beds/7:water", header: json })).toBe(405);
    expect(await ask({ httpMethod: "PUT", path: "/b%65ds/7:water", header: json })).toBe(isMounted ? 404 : 405);
  });

  test("the MCP path matches only without percent-encoding", async () => {
    const ping = postMcp('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    expect([await ask(ping), await ask({ ...ping, path: "/%6dcp" })]).toEqual([200, 404]);
  });
});

test.each([
  { target: "http://a/v1/me", status: 200 },
  { target: "http://a.example:80/v1/me", status: 200 },
  { target: "http://[::1]:80/v1/me", status: 200 },
  { target: "http://a;b/v1/me", status: 400 },
  { target: "http://a'b/v1/me", status: 400 },
  { target: "http://a%41/v1/me", status: 400 },
  { target: "http://a;b/greenhouse.v1.GreenhouseService/GetReading", status: 400 },
])("the target $target gets $status from a mounted gateway", async ({ target, status }) => {
  const gateway = createTestGateway({
    rest: { rules: [{ selector, ...get("/v1/me") }] },
    routes: (router) => router.service(GreenhouseService, { getReading: () => ({}) }),
  });
  const server = createServer(gateway.handler);
  onTestFinished(() => void server.close());
  const { port } = new URL(await listenOnLoopback(server));
  // The target is sent unchanged. Express finds the path "b/v1/me" in http://a;b/v1/me.
  const sent = request({ host: "127.0.0.1", port, path: target, headers: { host: "a", connection: "close" } }).end();
  const responded = Promise.withResolvers<IncomingMessage>();
  sent.on("response", responded.resolve).on("error", responded.reject);
  expect((await responded.promise).resume().statusCode).toBe(status);
});
