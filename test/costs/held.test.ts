import { describe, expect, test } from "vitest";
import { type MeasuredServer, startMeasuredServer } from "../support/costs/measured-server.ts";
import type { RawClient } from "../support/costs/raw-client.ts";
import { leastOf } from "../support/least-of.ts";
import { type HeldRow, heldRows } from "./held-rows.ts";

const sizes = new Map([
  ["bytes", 1],
  ["KiB", 1024],
  ["MiB", 1024 * 1024],
]);

/** A row takes seconds; every measurement five times over, on a machine that has other things to do, minutes. */
const timeout = 300_000;

/** Bytes that may stay once it is over: code that was compiled meanwhile, tables that grew. */
const staysBytes = 512 * 1024;

describe("what is held, with so much done and with four times as much, is as SECURITY.md says for", () => {
  test.for(heldRows)("$what", { timeout }, async (row) => {
    const mostBytes = bytesOf(row);
    await using server = await startMeasuredServer();
    // What is made once, such as code, is made now.
    await heldFor(server, row, row.n);
    for (const n of [row.n, 4 * row.n]) {
      const held = await leastOf(() => heldFor(server, row, n), mostBytes);
      console.log(
        `${String(n).padStart(7)}  ${String(Math.round(held)).padStart(10)}  ${row.atMost.padEnd(20)} ${row.what}`,
      );
      expect.soft(held, `bytes held with ${n} of it`).toBeLessThan(mostBytes);
    }
    const stays = await leastOf(() => staysAfter(server, row), staysBytes);
    expect.soft(stays, "bytes that stay with each time").toBeLessThan(staysBytes);
  });
});

function bytesOf({ atMost }: HeldRow): number {
  const [count, size = ""] = atMost.split(" ");
  return Number(count) * (sizes.get(size) ?? Number.NaN);
}

/** Does it, and returns the bytes held for each unit of it. */
async function heldFor(server: MeasuredServer, row: HeldRow, n: number): Promise<number> {
  const before = (await server.ask("held")).bytes;
  const { clients, units } = await row.run(server, n);
  const held = await heldWhenQuiet(server, clients);
  for (const client of clients) client[Symbol.dispose]();
  await server.ask("release");
  await server.ask("alone");
  return (held - before) / units;
}

/** Does it again, and returns the bytes that stay. */
async function staysAfter(server: MeasuredServer, row: HeldRow): Promise<number> {
  const before = (await server.ask("held")).bytes;
  await heldFor(server, row, 4 * row.n);
  return (await server.ask("held")).bytes - before;
}

/** Waits until the server has read whatever it is going to read. */
async function heldWhenQuiet(server: MeasuredServer, clients: readonly RawClient[]): Promise<number> {
  for (let before = "", quiet = 0; ;) {
    const { bytes, readBytes } = await server.ask("held");
    const state = [readBytes, ...clients.map(({ socket }) => socket.writableLength)].join();
    quiet = state === before ? quiet + 1 : 0;
    if (quiet === 3) return bytes;
    before = state;
  }
}
