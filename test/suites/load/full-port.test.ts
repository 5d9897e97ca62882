import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus } from "@protoport/gateway/gen/grpc/health/v1/health_pb.js";
import { type ChildServer, startChildServer } from "../../support/process/child-server.ts";
import { createTempFolder } from "@protoport/testing/process";

/** The default limit of connections in the server. */
const maxConnections = 10_000;
// File descriptors for everything except connections: files, pipes, threads.
const otherDescriptors = 500;
/** How many connections are open, unless this machine's limit for file descriptors is lower. */
const connectionCount = Math.min(maxConnections, descriptorLimit() - otherDescriptors);

function descriptorLimit(): number {
  const limit = execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim();
  return limit === "unlimited" ? Number.POSITIVE_INFINITY : Number(limit);
}

/** Number of connections per batch, which is less than the listen backlog. */
const openedPerBatch = 250;

const folder = createTempFolder();
const sockets: Socket[] = [];
let server: ChildServer;
let closed = 0;
beforeAll(async () => void (server = await startChildServer(folder.file("plants.db"))));
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function open(count: number): Promise<readonly Socket[]> {
  const { address: host, port } = server.address;
  const opened = Array.from({ length: count }, () => connect({ host, port }));
  await Promise.all(opened.map((socket) => once(socket, "connect")));
  sockets.push(...opened);
  return opened;
}

/** Opens connections, and sends a request on each, because the server closes idle connections after ten seconds. */
async function openKept(count: number): Promise<void> {
  const opened = await open(count);
  for (const socket of opened) socket.on("close", () => closed++).on("error", () => undefined);
  for (const socket of opened) socket.write("GET /livez HTTP/1.1\r\nhost: plants\r\n\r\n");
  await Promise.all(opened.map((socket) => once(socket, "data")));
}

async function expectProbesAnswered(): Promise<void> {
  const baseUrl = `http://127.0.0.1:${server.address.port}`;
  for (const path of ["/livez", "/readyz", "/healthz"]) {
    const { status, body } = await fetch(`${baseUrl}${path}`, { headers: { connection: "close" } });
    await body?.cancel();
    expect({ path, status }).toEqual({ path, status: 200 });
  }
  const health = createClient(Health, createGrpcTransport({ baseUrl }));
  expect(await health.check({})).toMatchObject({ status: HealthCheckResponse_ServingStatus.SERVING });
}

test(`probes get responses while ${connectionCount} connections are open and more arrive`, async () => {
  for (let remaining = connectionCount; remaining > 0; remaining -= openedPerBatch)
    await openKept(Math.min(remaining, openedPerBatch));
  await expectProbesAnswered();
  // Opens more connections than the server accepts above the limit.
  for (let i = 0; i < 4; i++) {
    for (const socket of await open(100)) socket.on("error", () => undefined);
    await expectProbesAnswered();
  }
  expect(closed).toBe(0);
});
