import { createServer } from "node:http";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../src/index.ts";
import { exchangeHttp1, startOnLoopback } from "../../testing/src/http/index.ts";

const procedure = `/${GreenhouseService.typeName}/GetReading`;

test.each([
  { name: "an RPC", httpMethod: "POST", path: procedure, want: true },
  { name: "an RPC with another method", httpMethod: "DELETE", path: procedure, want: true },
  { name: "a REST route", httpMethod: "GET", path: "/sensors/palm/reading?x=1", want: true },
  { name: "a path variable that is not UTF-8", httpMethod: "GET", path: "/sensors/%ff/reading", want: false },
  { name: "a route with an encoded literal", httpMethod: "GET", path: "/%73ensors/palm/reading", want: false },
  { name: "an unknown path", httpMethod: "GET", path: "/page", want: false },
  { name: "all resources", httpMethod: "OPTIONS", path: "*", want: false },
])("matches returns $want for $name, as the handler behaves", async ({ httpMethod, path, want }) => {
  const gateway = createGateway({ routes: (router) => void router.service(GreenhouseService, {}) });
  const seen: boolean[] = [];
  const server = createServer((request, response) => {
    seen.push(gateway.matches(request));
    gateway.handler(request, response, () => {
      response.setHeader("x-app", "yes");
      response.end();
    });
  });
  await using started = await startOnLoopback(server);
  const { header } = await exchangeHttp1(started.address, { httpMethod, path, header: [], body: Buffer.of() });
  expect([seen, header.some(([field]) => field.toLowerCase() === "x-app")]).toEqual([[want], !want]);
});
