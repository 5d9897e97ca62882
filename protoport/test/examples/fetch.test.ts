import { expect, test } from "vitest";
import * as route from "../../examples/fetch/next-route.ts";
import worker from "../../examples/fetch/worker.ts";

// The Fetch examples that run on Node.js. protoport/gateway/test/suites/runtimes runs the others.

const reading = "https://greenhouse.example/sensors/palm/reading";

test("the Next route handler responds with the gateway", async () => {
  expect(await (await route.GET(new Request(reading))).json()).toEqual({ sensor: "palm", degreesCelsius: 21 });
  expect((await route.PUT(new Request(reading, { method: "PUT" }))).status).toBe(405);
});

test("the worker responds with the gateway", async () => {
  const response = await worker.fetch(new Request(reading, { headers: { "cf-connecting-ip": "192.0.2.1" } }));
  expect(await response.json()).toEqual({ sensor: "palm", degreesCelsius: 21 });
});
