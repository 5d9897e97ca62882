import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { replyLimitMs } from "../running-server.ts";
import { startOnLoadCore } from "../server-process.ts";
import { envoyConfig } from "./envoy-config.ts";
import { listen, type Listening, serve } from "./serve.ts";

// Envoy or grpc-gateway in front of the library, which runs on the load's core. PROXY is the path to the proxy's
// program.
const program = process.env["PROXY"] ?? "";

/** Envoy has one worker, because each server has one core. The separate base id allows several Envoy processes. */
const envoyOptions = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];

/** Milliseconds between two checks whether the program listens. */
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
      // The error is ignored, because the program does not listen yet.
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`${program} did not listen within ${String(replyLimitMs)} ms`);
}
