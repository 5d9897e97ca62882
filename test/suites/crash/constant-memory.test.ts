import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { Readable, type Writable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { plantLocationOf } from "../../../src/server/index.ts";
import { migratePlants } from "../../../src/stores/index.ts";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { startPostgres } from "../../support/plants/postgres-server.ts";

/** How many plants are imported and exported. The nightly run uses ten million. */
const plants = Number(process.env["STREAMED_PLANTS"] ?? 1_000_000);
/** Heap limit in MiB. The program and its current batch need 15, and a million ids more than 30. */
const heapMaxMib = 40;
/** Limit of resident memory in MiB. Node.js, its young objects and buffers need 110 to 190 for any number of plants. */
const residentMaxMib = 256;
/** Timeout in ms, which has a tenth of a millisecond per plant, several times the usual duration. */
const timeout = 60_000 + plants / 10;

const plantsInChunk = 5_000;
const folder = shared(() => createTempFolder());
const postgres = shared(() => startPostgres());

const places: readonly { name: string; createUrl: () => Promise<string> }[] = [
  { name: "an SQLite file", createUrl: () => Promise.resolve(`sqlite:${folder.file("plants.db")}`) },
  { name: "PostgreSQL", createUrl: () => postgres.createSchema() },
];

describe.each(places)(`${plants} plants in $name`, ({ createUrl }) => {
  test("are imported and exported in constant memory", { timeout }, async () => {
    const url = await createUrl();
    await migratePlants(plantLocationOf(url));
    const imported = await run(["import"], url, Readable.from(chunks()));
    const want = { exitCode: 0, hash: hashOf([`${plants} added, 0 already present, 0 skipped (deleted before)\n`]) };
    expect(imported).toMatchObject(want);
    expect(imported.peakMib).toBeLessThan(residentMaxMib);
    const exported = await run(["export"], url, Readable.from([]));
    expect(exported).toMatchObject({ exitCode: 0, hash: hashOf(chunks()) });
    expect(exported.peakMib).toBeLessThan(residentMaxMib);
  });
});

/** Ids with every length up to 19 digits, in ascending order, one per line. */
function* chunks(): Generator<string> {
  const step = 2n ** 63n / BigInt(plants);
  for (let first = 0; first < plants; first += plantsInChunk) {
    const count = Math.min(plantsInChunk, plants - first);
    yield Array.from({ length: count }, (_, i) => `${BigInt(first + i) * step}\n`).join("");
  }
}

function hashOf(texts: Iterable<string>): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text);
  return hash.digest("hex");
}

async function run(args: readonly string[], databaseUrl: string, input: Readable) {
  const peak = new URL("../../../protoport/testing/src/process/print-peak.ts", import.meta.url).href;
  const flags = [`--max-old-space-size=${heapMaxMib}`, "--import", peak];
  const child = spawn(process.execPath, [...flags, join(projectFolder, "src/command/main.ts"), ...args], {
    env: { PATH: process.env["PATH"], DATABASE_URL: databaseUrl },
  });
  const hash = createHash("sha256");
  child.stdout.on("data", (chunk: Buffer) => void hash.update(chunk));
  const [stderr] = await Promise.all([textOf(child.stderr), once(child, "close"), feed(input, child.stdin)]);
  const peakMib = Number(/peak (\d+) KiB/.exec(stderr)?.[1]) / 1_024;
  return { exitCode: child.exitCode, hash: hash.digest("hex"), peakMib, stderr };
}

// A command that stops reading reports why by its exit code.
async function feed(input: Readable, stdin: Writable): Promise<void> {
  await pipeline(input, stdin).catch(() => undefined);
}
