import { text } from "node:stream/consumers";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type Gateway } from "../../../../gateway/src/index.ts";
import { createProbes, drainGracefully, Readiness } from "../../../../gateway/src/health/index.ts";
import { buildGo, buildJava } from "../../../../testing/src/gateway/grpc-programs.ts";
import { type Balancer, startBalancer } from "../../../../testing/src/http/balancer.ts";
import { buildLimitMs, freePort, openPython, projectFolder } from "@protoport/testing/process";

// Clients of all kinds while servers restart. The page "Clients and restarts" has the results.

type Command = readonly [string, ...string[]];

interface ClientKind {
  readonly name: string;
  readonly build: () => Promise<Command>;
  readonly args?: readonly string[];
  /** Whether the client with its defaults may lose a call while two servers restart in turn. */
  readonly losesCalls?: boolean;
}

const nodeProgram =
  (file: string): ClientKind["build"] =>
  () =>
    Promise.resolve([process.execPath, join(import.meta.dirname, file)]);

// oxfmt-ignore
const clients: readonly ClientKind[] = [
  { name: "grpc-go", build: async () => [(await buildGo("restarts")).file] },
  { name: "grpc-java", build: async () => {
      const { file, args } = await buildJava("Restarts");
      return [file, ...args.slice(0, -1)];
    } },
  { name: "grpcio", build: async () => {
      const programs = await openPython(join(projectFolder, "protoport/conformance/servers/python/requirements.txt"));
      return [join(programs, "python"), join(import.meta.dirname, "grpcio.py")];
    } },
  { name: "grpc-js", build: nodeProgram("grpc-js.ts") },
  { name: "createGrpcTransport", build: nodeProgram("connect-node.ts"), args: ["protoport"] },
  { name: "connect-node over gRPC", build: nodeProgram("connect-node.ts"), args: ["grpc"], losesCalls: true },
  { name: "connect-node over HTTP/1.1", build: nodeProgram("connect-node.ts"), args: ["connect"] },
  { name: "fetch", build: nodeProgram("fetch.ts") },
  { name: "curl", build: nodeProgram("curl.ts") },
];

const restarts = 3;
/** Milliseconds for which a server serves calls before it drains. The balancer checks ten times in it. */
const delayMs = 500;

const downMs = 1_000;
type Server = { readonly gateway: Gateway; readonly readiness: Readiness };

async function startServer(port: number): Promise<Server> {
  const readiness = new Readiness({});
  const gateway = createGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: async ({ sensor }) => {
          await pause(5);
          return { sensor };
        },
      }),
    endpoints: createProbes(readiness),
  });
  await gateway.listen({ host: "127.0.0.1", port });
  return { gateway, readiness };
}

/** Starts a client, and returns a function that ends it and returns its calls and errors. */
function startClient([file, ...first]: Command, port: number, args: readonly string[]): () => Promise<Outcome> {
  const child = spawn(file, [...first, String(port), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = Promise.all([text(child.stdout), once(child, "exit")]);
  return async () => {
    child.stdin.end();
    const [calls = "", ...errors] = (await ended)[0].trim().split("\n");
    return { calls: Number(calls), errors };
  };
}

type Outcome = { readonly calls: number; readonly errors: readonly string[] };

/** Restarts two servers behind a balancer one after the other. */
async function rollTwo(command: Command, args: readonly string[]): Promise<Outcome> {
  const ports = [await freePort(), await freePort()];
  const servers = await Promise.all(ports.map(startServer));
  await using balancer = await startBalancer(ports);
  await untilReady(balancer, ports);
  const end = startClient(command, balancer.address.port, args);
  await pause(2_000);
  for (let restart = 0; restart < restarts * ports.length; restart += 1) {
    const at = restart % ports.length;
    const [server, port = 0] = [servers[at], ports[at]];
    if (server === undefined) throw new Error("there is no server");
    await drainGracefully(server.gateway, server.readiness, { delayMs, timeoutMs: 10_000 });
    servers[at] = await startServer(port);
    await untilReady(balancer, ports);
    await pause(500);
  }
  const outcome = await end();
  await Promise.all(servers.map(({ gateway }) => gateway.close()));
  return outcome;
}

const untilReady = async (balancer: Balancer, ports: readonly number[]): Promise<void> =>
  await expect.poll(() => ports.every((port) => balancer.isReady(port))).toBe(true);

async function restartOne(command: Command, args: readonly string[]): Promise<Outcome> {
  const port = await freePort();
  let server = await startServer(port);
  const end = startClient(command, port, args);
  await pause(2_000);
  for (let restart = 0; restart < restarts; restart += 1) {
    await drainGracefully(server.gateway, server.readiness, { delayMs: 0, timeoutMs: 10_000 });
    await pause(downMs);
    server = await startServer(port);
    await pause(1_500);
  }
  const outcome = await end();
  await server.gateway.close();
  return outcome;
}

describe.each(clients)("$name", { timeout: buildLimitMs }, ({ name, build, args = [], losesCalls = false }) => {
  test(`${losesCalls ? "may lose" : "loses no"} calls while two servers behind a balancer restart in turn`, async () => {
    const { calls, errors } = await rollTwo(await build(), args);
    // The page has these figures.
    console.log(`${name}: ${calls} calls, lost: ${errors.length === 0 ? "none" : errors.join("; ")}`);
    expect(calls).toBeGreaterThan(100);
    expect(losesCalls ? [] : errors).toEqual([]);
  });

  const repeated = losesCalls ? ["two servers restart"] : [];
  test.for(repeated)("with the setting on the page, loses no call while %s", async () => {
    expect((await rollTwo(await build(), [...args, "retry"])).errors).toEqual([]);
  });

  test("with the setting on the page, loses no call while the only server is down", async () => {
    const { calls, errors } = await restartOne(await build(), [...args, "retry"]);
    // grpc-java waits for a second or more before it connects again.
    expect(calls).toBeGreaterThan(10);
    expect(errors).toEqual([]);
  });
});
