import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Limits } from "../../src/gateway/index.ts";
import { openSocket } from "../support/carriers/exchange.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import { waitLimitMs, within } from "../support/deadline.ts";
import { startGreenhouse, type TestGreenhouse } from "../support/gateway/greenhouse.ts";
import { createTempFolder, type TempFolder } from "../support/process/temp-folder.ts";

// A thousand clients of Server-Sent Events that never end, who read slowly or not at all: what is held for them, and who
// is cut off, as SECURITY.md says. Over a Unix socket, of which the system itself holds little.

const kib = 1024;
const mib = 1024 * kib;
const clients = 1_000;
/** What is held at most for one that reads nothing. */
const heldEachBytes = 256 * kib;
/** What a client has read and not looked at, which its socket holds beside that in the same process. */
const readBytes = 64 * kib;
/** A connection and its call, on both sides, without what is to be sent. */
const ownBytes = 32 * kib;

/** How a client reads, which the path of its request tells the server. */
type Manner = "slowly" | "never" | "always";

let folder: TempFolder;
/** The manners of the calls that have ended. */
let ended: string[];
let sockets: Socket[];

beforeEach(() => {
  folder = createTempFolder();
  ended = [];
  sockets = [];
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  folder[Symbol.dispose]();
});

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

/** Opens so many clients, none of which has read anything yet. */
async function open({ address }: TestGreenhouse, count: number, manner: Manner): Promise<readonly Socket[]> {
  const opened: Socket[] = [];
  while (opened.length < count) {
    const socket = openSocket(address).pause();
    opened.push(socket);
    sockets.push(socket);
    await within(once(socket, "connect"), "a connection");
    socket.on("error", () => undefined);
    socket.write(`GET /${manner} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
  }
  return opened;
}

/** Reads what is there, and returns how much that is. */
async function readSome(socket: Socket): Promise<number> {
  const some = once(socket, "data");
  socket.resume();
  const [bytes] = await within(some, "the next event");
  socket.pause();
  return Buffer.byteLength(bytes);
}

/** What the server holds: without what the clients have read and not looked at. */
async function heldByServer(): Promise<number> {
  const ofClients = sockets.reduce((sum, { readableLength }) => sum + readableLength, 0);
  return (await heldBytes()) - ofClients;
}

describe("of a thousand clients of Server-Sent Events", { timeout: 4 * waitLimitMs }, () => {
  test("those that read slowly are served, and little is held for each", async () => {
    await using greenhouse = await start();
    const before = await heldByServer();
    const slow = await open(greenhouse, clients, "slowly");
    let most = 0;
    for (let round = 0; round < 10; round += 1) {
      for (const socket of slow) expect(await readSome(socket)).toBeGreaterThan(0);
      most = Math.max(most, (await heldByServer()) - before);
    }
    expect(ended).toEqual([]);
    expect(most).toBeLessThan(clients * (heldEachBytes + readBytes));
  });

  test("those that read nothing for the time that is allowed are cut off, and no others", async () => {
    await using greenhouse = await start({ idleTimeoutMs: 10_000 });
    await open(greenhouse, clients / 2, "never");
    const slow = await open(greenhouse, clients / 2, "slowly");
    while (ended.length < clients / 2) {
      for (const socket of slow) await readSome(socket);
      await after(100);
    }
    expect(new Set(ended)).toEqual(new Set(["never"]));
    for (const socket of slow) expect(await readSome(socket)).toBeGreaterThan(0);
  });

  test("those that read nothing are cut off where too much is held for all together, and no others", async () => {
    const backlogBytes = 16 * mib;
    await using greenhouse = await start({ backlogBytes });
    const before = await heldByServer();
    const always = 10;
    for (const socket of await open(greenhouse, always, "always")) socket.resume();
    await open(greenhouse, clients - always, "never");
    // Until nobody has been cut off for a while.
    let endedBefore = -1;
    while (endedBefore !== ended.length) {
      endedBefore = ended.length;
      await after(1_000);
    }
    expect(new Set(ended)).toEqual(new Set(["never"]));
    expect((await heldByServer()) - before).toBeLessThan(backlogBytes + clients * ownBytes);
  });
});
