// The entry has one process for each core, which share the ports 8080 (HTTP/1.1 and HTTP/2 without TLS) and 8081 (TLS).
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { createGateway } from "@protoport/gateway";
import { createHttpEngine } from "@protoport/gateway/engine";
import { optionsFor, readItems } from "./service.ts";

const {
  HOST: host = "0.0.0.0",
  PORT: port = "8080",
  TLS_PORT: tlsPort = "8081",
  TLS_CERT: certFile = "/certs/server.crt",
  TLS_KEY: keyFile = "/certs/server.key",
  DATASET: itemsFile = "/data/dataset.json",
} = process.env;

const drainMs = 10_000;

if (process.argv[2] === "worker") await work();
else start();

function start(): void {
  const workers = Array.from({ length: availableParallelism() }, () => fork(import.meta.filename, ["worker"]));
  let listening = 0;
  for (const worker of workers) {
    worker.once("message", () => {
      listening += 1;
      if (listening === workers.length) console.log(`${String(listening)} processes listen on ${host}:${port}`);
    });
    // A worker that fails stops the entry, so that no figures are measured on fewer cores.
    worker.once("exit", (code) => {
      if (code === 0) return;
      process.exitCode = 1;
      stop(workers);
    });
  }
  process.once("SIGTERM", () => stop(workers));
}

function stop(workers: readonly ChildProcess[]): void {
  for (const worker of workers) worker.kill("SIGTERM");
}

async function work(): Promise<void> {
  const options = { ...optionsFor(readItems(itemsFile)), engine: createHttpEngine() };
  const [plain, secure] = [createGateway(options), createGateway(options)];
  const drain = async (): Promise<void> => {
    await Promise.all([plain.drain(drainMs), secure.drain(drainMs)]);
    if (process.connected) process.disconnect?.();
  };
  process.once("SIGTERM", () => void drain());
  // The worker drains when the first process has exited.
  process.once("disconnect", () => void drain());
  await plain.listen({ host, port: Number(port), reusePort: true });
  // TLS is optional, because not every run mounts a certificate.
  if (existsSync(certFile)) {
    const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    await secure.listen({ host, port: Number(tlsPort), reusePort: true, tls });
  }
  process.send?.("listening");
}
