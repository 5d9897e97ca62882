import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  GetReadingRequestSchema,
  GreenhouseService,
} from "../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "@protoport/gateway/reflection";
import { startBalancerProcess } from "../../../protoport/testing/src/process/balancer-process.ts";
import { type Address, createTestGateway, freePort, getReadingProcedure, waitLimitMs } from "@protoport/testing";
import { type ProxyProcess, startProxyProcess } from "../../../protoport/testing/src/gateway/proxy-process.ts";
// oxfmt-ignore
import { type Caller, callOverGrpc, callOverRest, type GrpcCalls, type RestCalls, startLoad
} from "../../support/restart/load.ts";

// Restarts the command `proxy` with SIGTERM, and starts the next one on the same ports, with the default waits.

const callCount = 2_000;
/** Milliseconds between two calls by a caller. The balancer's checks need the cores, too. */
const callGapMs = 2;

const upstream = createTestGateway({
  routes: (router) => {
    router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) });
    router.service(ServerReflection, createReflectionService([GreenhouseService]));
  },
});
let upstreamUrl = "";

beforeAll(async () => {
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  upstreamUrl = `http://127.0.0.1:${port}`;
});
afterAll(() => upstream.close());

const restCalls: RestCalls = {
  httpMethod: "GET",
  header: {},
  path: (id) => `/sensors/${id}/reading`,
  judge: (id, httpStatus, body) =>
    httpStatus === 200 && body === `{"sensor":"${id}","degreesCelsius":21}` ? "completed" : undefined,
};

const grpcCalls: GrpcCalls = {
  procedure: getReadingProcedure,
  header: {},
  message: (id) => toBinary(GetReadingRequestSchema, create(GetReadingRequestSchema, { sensor: String(id) })),
  judge: (grpcStatus) => (grpcStatus === "0" ? "completed" : undefined),
};

/** The ports on which a proxy listens. They do not change between starts. */
type Ports = { readonly calls: number; readonly admin: number };

function start({ calls, admin }: Ports): Promise<ProxyProcess> {
  const ports = ["--port", String(calls), "--admin-port", String(admin)];
  return startProxyProcess(["--upstream", upstreamUrl, "--reflection", ...ports]);
}

type BalancerPorts = { readonly rest: number; readonly grpc: number; readonly status: number };

// HAProxy checks each second, and takes a server out after two failures.
function configOf(mode: "http" | "tcp", at: BalancerPorts, proxies: readonly Ports[]): string {
  const servers = (option: string): string =>
    proxies
      .map(({ calls, admin }) => `    server ${calls} 127.0.0.1:${calls} ${option} check port ${admin} check-proto h1`)
      .join("\n");
  const http2 = mode === "http" ? "proto h2" : "";
  return `
defaults
    mode ${mode}
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    default-server inter 1s fall 2 rise 1

listen rest
    bind 127.0.0.1:${at.rest}
    option httpchk GET /readyz
${servers("")}

listen grpc
    bind 127.0.0.1:${at.grpc} ${http2}
    option httpchk GET /readyz
${servers(http2)}

listen status
    mode http
    bind 127.0.0.1:${at.status}
    stats enable
    stats uri /
`;
}

/** Returns whether HAProxy sends calls to every server in every listener. */
async function isComplete(statusPort: number): Promise<boolean> {
  const lines = (await (await fetch(`http://127.0.0.1:${statusPort}/;csv`)).text()).split("\n");
  const [names = [], ...rows] = lines.map((line) => line.split(","));
  const servers = rows.filter((row) => /^\d+$/.test(row[names.indexOf("svname")] ?? ""));
  return servers.length === 4 && servers.every((row) => row[names.indexOf("status")] === "UP");
}

const onLoopback = (port: number): Address => ({ address: "127.0.0.1", port });

const paced = (caller: Caller): Caller => ({
  call: async (id) => {
    await pause(callGapMs);
    return await caller.call(id);
  },
  close: () => caller.close(),
});

/** Repeats a call that was not processed once, as gRPC clients do by themselves. */
const repeating = (caller: Caller): Caller => ({
  call: async (id) => {
    const outcome = await caller.call(id);
    return outcome === "unprocessed" ? await caller.call(id) : outcome;
  },
  close: () => caller.close(),
});

// The tests run one after the other, because a port is free until it is listened on, also in the other mode.
test.each(["tcp", "http"] as const)(
  `${callCount} calls succeed during a rolling restart behind HAProxy in mode "%s"`,
  { timeout: 10 * waitLimitMs },
  async (mode) => {
    const proxies: readonly Ports[] = [
      { calls: await freePort(), admin: await freePort() },
      { calls: await freePort(), admin: await freePort() },
    ];
    await using running = new AsyncDisposableStack();
    const started = await Promise.all(proxies.map(start));
    for (const proxy of started) running.use(proxy);
    const at = { rest: await freePort(), grpc: await freePort(), status: await freePort() };
    const text = configOf(mode, at, proxies);
    const config = { name: "haproxy.cfg", text };
    const program = { file: "haproxy", args: ["-db", "-f", config.name], config, ports: Object.values(at) };
    running.use(await startBalancerProcess(program));
    const untilComplete = (): Promise<void> => expect.poll(() => isComplete(at.status)).toBe(true);
    await untilComplete();
    const callers = [0, 1].flatMap(() => [
      callOverRest(onLoopback(at.rest), restCalls),
      callOverGrpc(onLoopback(at.grpc), grpcCalls),
    ]);
    const load = startLoad(callers.map(repeating).map(paced));
    for (const [index, proxy] of started.entries()) {
      const before = load.completed();
      await expect.poll(load.completed).toBeGreaterThan(before + callCount / 8);
      expect(await proxy.command.stop("SIGTERM")).toBe(0);
      running.use(await start(proxies[index] ?? { calls: 0, admin: 0 }));
      await untilComplete();
    }
    await expect.poll(load.completed, { timeout: waitLimitMs }).toBeGreaterThan(callCount);
    const { failed, unprocessed } = await load.stop();
    expect({ failed, unprocessed }).toEqual({ failed: [], unprocessed: 0 });
  },
);
