import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { singleServer } from "../src/stores/postgres/delete/single-server.ts";
import { waitingMaxDefault } from "../src/stores/queue/queued-store.ts";
import { storeSchema } from "../src/stores/postgres/schema/store-schema.ts";

// Operators size a deployment by figures that are the same in the code, the pages and the files in deploy/.

/** A process's connections for locked plants, checks and retention. */
const otherConnections = 3;

const words: readonly string[] = ["zero", "one", "two", "three", "four", "five", "six"];

function read(path: string): string {
  return readFileSync(join(import.meta.dirname, "..", path), "utf8").replaceAll(/\s+/g, " ");
}

/** Returns the number that a pattern captures in a file. */
function numberIn(path: string, pattern: RegExp): number {
  const [, captured = ""] = pattern.exec(read(path)) ?? [];
  return Number(captured.replaceAll(",", ""));
}

describe("the connections per process", () => {
  const { inFlightMax } = singleServer(storeSchema("plants")).lanes;
  const connections = words[inFlightMax + otherConnections] ?? "";

  test.each([
    {
      path: "docs/explanation/storage.md",
      text: `up to ${words[inFlightMax]} connections for deletions, and up to ${words[otherConnections]} more`,
    },
    { path: "docs/how-to/scaling.md", text: `allow ${connections} per process` },
    { path: "docs/how-to/citus.md", text: `needs ${words[otherConnections]} connections to the coordinator` },
    { path: "deploy/postgresql.conf", text: `# ${connections[0]?.toUpperCase()}${connections.slice(1)} per process` },
    { path: "deploy/pgbouncer.ini", text: `; ${connections[0]?.toUpperCase()}${connections.slice(1)} per process` },
  ])("in $path match the code", ({ path, text }) => {
    expect(read(path)).toContain(text);
  });

  test("fit into max_connections even during a rolling upgrade", () => {
    const allowed = numberIn("deploy/postgresql.conf", /max_connections = (\d+)/);
    expect(numberIn("deploy/cluster/patroni.yml", /max_connections: (\d+)/)).toBe(allowed);
    const replicas = numberIn("deploy/kubernetes/overlay/kustomization.yaml", /count: (\d+)/);
    const surge = numberIn("deploy/kubernetes/base/plantstore.yaml", /maxSurge: (\d+)/);
    expect((replicas + surge) * (inFlightMax + otherConnections)).toBeLessThan(allowed);
  });
});

test.each([
  { path: "docs/how-to/operations.md", pattern: /Up to ([\d,]+) deletions are queued/ },
  { path: "docs/how-to/citus.md", pattern: /\*\*The queue\*\* holds ([\d,]+) calls/ },
])("the queue size documented in $path is current", ({ path, pattern }) => {
  expect(waitingMaxDefault).toBe(numberIn(path, pattern));
});

test.each(["deploy/kubernetes/base/plantstore.yaml", "protoport/deploy/kubernetes/base/proxy.yaml"])(
  "the memory limit in %s covers an idle process and its load",
  (path) => {
    const [idle, limit] = [/requests: {[^}]*memory: (\d+)Mi/, /limits: { memory: (\d+)Mi/].map((it) =>
      numberIn(path, it),
    );
    const rows = [...read("protoport/SECURITY.md").matchAll(/\| ([\d.]+) MiB in all \|/g)].map(([, mib]) =>
      Number(mib),
    );
    expect(Math.max(...rows) + Number(idle)).toBeLessThanOrEqual(Number(limit));
  },
);
