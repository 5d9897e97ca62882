import { expect, test } from "vitest";
import * as route from "../../examples/fetch/next-route.ts";
import worker from "../../examples/fetch/worker.ts";

// The examples over Fetch that need no runtime of their own. packages/gateway/test/suites/runtimes runs the others.

const reading = "https://greenhouse.example/sensors/palm/reading";

test("the route handler of Next answers by the gateway", async () => {
  expect(await (await route.GET(new Request(reading))).json()).toEqual({ sensor: "palm", degreesCelsius: 21 });
  expect((await route.PUT(new Request(reading, { method: "PUT" }))).status).toBe(405);
});

test("the worker answers by the gateway", async () => {
  const response = await worker.fetch(new Request(reading, { headers: { "cf-connecting-ip": "192.0.2.1" } }));
  expect(await response.json()).toEqual({ sensor: "palm", degreesCelsius: 21 });
});
