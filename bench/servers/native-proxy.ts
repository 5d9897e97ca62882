import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { replyLimitMs } from "../running-server.ts";
import { startOnLoadCore } from "../server-process.ts";
import { envoyConfig } from "./envoy-config.ts";
import { listen, type Listening, serve } from "./serve.ts";

// Envoy or grpc-gateway, whose program is in PROXY, in front of the library on the load's core.
const program = process.env["PROXY"] ?? "";

/** One worker, because each server has one core, and a separate base id, so that several can run. */
const envoyOptions = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];

/** How often to check whether the program listens, in ms. */
const checkIntervalMs = 50;

await serve(async () => {
  const upstream = await startOnLoadCore(fileURLToPath(new URL("library.ts", import.meta.url)));
  const port = await freePort();
  const config = JSON.stringify(envoyConfig({ port, upstreamPort: upstream.port }));
  const args = program.endsWith("envoy") ? ["--config-yaml", config, ...envoyOptions] : [];
  const environment = { BENCH_PORT: String(port), BENCH_UPSTREAM: `127.0.0.1:${String(upstream.port)}` };
  const child = spawn(program, args, {
    env: { ...process.env, ...environment },
    stdio: ["pipe", "ignore", "inherit"],
  });
  process.on("exit", () => child.kill("SIGKILL"));
  await untilConnected(port);
  return { port, pid: child.pid };
});

async function freePort(): Promise<number> {
  const server = createServer();
  const { port }: Listening = await listen(server);
  server.close();
  return port;
}

async function untilConnected(port: number): Promise<void> {
  for (const untilMs = performance.now() + replyLimitMs; performance.now() < untilMs; await pause(checkIntervalMs)) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch {
      // The program does not listen yet.
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`${program} did not listen within ${String(replyLimitMs)} ms`);
}
