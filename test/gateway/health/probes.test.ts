import { expect, test } from "vitest";
import { createProbes } from "../../../src/gateway/health/probes.ts";
import { Readiness } from "../../../src/gateway/health/readiness.ts";
import { askEndpoint } from "../../support/gateway/ask-endpoint.ts";

const healthy = new Readiness({});
const draining = new Readiness({});
draining.startDraining();
const broken = new Readiness({ store: { problem: "/var/lib/plants.db: disk full" } });

test.each([
  {
    name: "/livez is 200 while all is well",
    path: "/livez",
    readiness: healthy,
    httpStatus: 200,
    body: { status: "live" },
  },
  {
    name: "/livez is 200 while draining: a restart would lose calls",
    path: "/livez",
    readiness: draining,
    httpStatus: 200,
    body: { status: "live" },
  },
  {
    name: "/livez is 200 while the store is away: a restart would not help",
    path: "/livez",
    readiness: broken,
    httpStatus: 200,
    body: { status: "live" },
  },
  {
    name: "/readyz is 200 while all is well",
    path: "/readyz",
    readiness: healthy,
    httpStatus: 200,
    body: { status: "ready" },
  },
  {
    name: "/readyz is 503 while draining",
    path: "/readyz",
    readiness: draining,
    httpStatus: 503,
    body: { status: "not ready", obstacles: ["draining"] },
  },
  {
    name: "/readyz names the part, and keeps the file name for the log",
    path: "/readyz",
    readiness: broken,
    httpStatus: 503,
    body: { status: "not ready", obstacles: ["store"] },
  },
  {
    name: "/healthz says what /readyz says",
    path: "/healthz",
    readiness: broken,
    httpStatus: 503,
    body: { status: "not ready", obstacles: ["store"] },
  },
])("$name", async ({ path, readiness, httpStatus, body }) => {
  const answer = await askEndpoint(createProbes(readiness).find((endpoint) => endpoint.path === path));
  expect(answer.httpStatus).toBe(httpStatus);
  expect(answer.header).toEqual({ "content-type": "application/json", "cache-control": "no-store" });
  expect(JSON.parse(String(answer.body))).toEqual(body);
});

test("no probe asks for a credential", () => {
  expect(createProbes(healthy).map(({ path, open }) => ({ path, open }))).toEqual([
    { path: "/livez", open: true },
    { path: "/readyz", open: true },
    { path: "/healthz", open: true },
  ]);
});
