import { setTimeout as after } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Limits } from "../../src/gateway/index.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import { startSlowClients } from "../support/costs/slow-clients.ts";
import { waitLimitMs } from "../support/deadline.ts";
import { startGreenhouse, type TestGreenhouse } from "../support/gateway/greenhouse.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

// A thousand clients of Server-Sent Events that never end, who read slowly or not at all: what is held for them, and who
// is cut off, as SECURITY.md says. Over a Unix socket, of which the system itself holds little.

const kib = 1024;
const mib = 1024 * kib;
const clients = 1_000;
/** What is held at most for one that reads nothing. */
const heldEachBytes = 256 * kib;
/** A connection and its call without what is to be sent. */
const ownBytes = 16 * kib;

let folder: TempFolder;
/** The manners of the calls that have ended. */
let ended: string[];

beforeEach(() => {
  folder = createTempFolder();
  ended = [];
});
afterEach(() => folder[Symbol.dispose]());

async function start(limits: Partial<Limits> = {}): Promise<TestGreenhouse> {
  const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
  const rules = [{ selector, pattern: { case: "get", value: "/{sensor}" } }] as const;
  const note = "x".repeat(4_000);
  return await startGreenhouse(
    {
      async *watchReadings({ sensor }) {
        try {
          for (;;) yield { sensor: note };
        } finally {
          ended.push(sensor);
        }
      },
    },
    { rest: { rules }, limits },
    { path: folder.file("socket") },
  );
}

describe("of a thousand clients of Server-Sent Events", { timeout: 4 * waitLimitMs }, () => {
  test("those that read slowly are served, and little is held for each", async () => {
    await using greenhouse = await start();
    await using readers = startSlowClients();
    const before = await heldBytes();
    await readers.open(greenhouse.address, clients, "slowly");
    let most = 0;
    for (let round = 0; round < 10; round += 1) {
      await readers.readSome();
      most = Math.max(most, (await heldBytes()) - before);
    }
    expect(ended).toEqual([]);
    expect(most).toBeLessThan(clients * (heldEachBytes + ownBytes));
  });

  test("those that read nothing for the time that is allowed are cut off, and no others", async () => {
    await using greenhouse = await start({ idleTimeoutMs: 10_000 });
    await using readers = startSlowClients();
    await readers.open(greenhouse.address, clients / 2, "never");
    await readers.open(greenhouse.address, clients / 2, "slowly");
    while (ended.length < clients / 2) {
      await readers.readSome();
      await after(100);
    }
    expect(new Set(ended)).toEqual(new Set(["never"]));
    await readers.readSome();
  });

  test("those that read nothing are cut off where too much is held for all together, and no others", async () => {
    const backlogBytes = 16 * mib;
    await using greenhouse = await start({ backlogBytes });
    await using readers = startSlowClients();
    const before = await heldBytes();
    const always = 10;
    await readers.open(greenhouse.address, always, "always");
    await readers.open(greenhouse.address, clients - always, "never");
    // Until nobody has been cut off for a while.
    let endedBefore = -1;
    while (endedBefore !== ended.length) {
      endedBefore = ended.length;
      await after(1_000);
    }
    expect(new Set(ended)).toEqual(new Set(["never"]));
    expect((await heldBytes()) - before).toBeLessThan(backlogBytes + clients * ownBytes);
  });
});
