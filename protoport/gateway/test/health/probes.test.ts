import { expect, test } from "vitest";
import { createProbes } from "../../src/health/probes.ts";
import { Readiness } from "../../src/health/readiness.ts";
import { askEndpoint } from "../../../testing/src/gateway/ask-endpoint.ts";

const healthy = new Readiness({});
const draining = new Readiness({});
draining.startDraining();
const broken = new Readiness({ store: { problem: "/var/lib/orders.db: disk full" } });
const mirror = { problem: "10.0.0.7 does not respond", isOptional: true };
const degraded = new Readiness({ mirror });
const brokenAndDegraded = new Readiness({ mirror, store: { problem: "disk full" } });

test.each(
  // oxfmt-ignore
  [
    ["/livez returns 200 while all parts are healthy", "/livez", healthy, 200, { status: "live" }],
    ["/livez returns 200 while draining, which avoids a restart", "/livez", draining, 200, { status: "live" }],
    ["/livez returns 200 while the store is unavailable, because restarts cannot help", "/livez", broken, 200,
      { status: "live" }],
    ["/readyz returns 200 while all parts are healthy", "/readyz", healthy, 200, { status: "ready" }],
    ["/readyz returns 503 while draining", "/readyz", draining, 503, { status: "not ready", obstacles: ["draining"] }],
    ["/readyz names the unhealthy part but not the file in its error", "/readyz", broken, 503,
      { status: "not ready", obstacles: ["store"] }],
    ["/readyz returns 200 and names an unhealthy optional part", "/readyz", degraded, 200,
      { status: "ready", degraded: ["mirror"] }],
    ["/readyz lists unhealthy optional parts separately from obstacles", "/readyz", brokenAndDegraded, 503,
      { status: "not ready", obstacles: ["store"], degraded: ["mirror"] }],
    ["/healthz returns the response of /readyz", "/healthz", broken, 503,
      { status: "not ready", obstacles: ["store"] }],
  ],
)("%s", async (_, path, readiness, httpStatus, body) => {
  const response = await askEndpoint(createProbes(readiness).find((endpoint) => endpoint.path === path));
  expect(response.httpStatus).toBe(httpStatus);
  expect(response.header).toEqual({ "content-type": "application/json", "cache-control": "no-store" });
  expect(JSON.parse(String(response.body))).toEqual(body);
});

test("probes need no credential", () => {
  expect(createProbes(healthy).map(({ path, open }) => ({ path, open }))).toEqual([
    { path: "/livez", open: true },
    { path: "/readyz", open: true },
    { path: "/healthz", open: true },
  ]);
});
