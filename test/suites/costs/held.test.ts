import { describe, expect, test } from "vitest";
import { type Answers, type MeasuredServer, startMeasuredServer } from "../../support/costs/measured-server.ts";
import type { RawClient } from "../../support/costs/raw-client.ts";
import { leastOf } from "../../../packages/testing/src/least-of.ts";
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
    await server.ask("usePool");
    // What is made once, such as code, is made now.
    await heldFor(server, row, row.n);
    for (const n of [row.n, 4 * row.n]) {
      const held = await leastOf(() => (row.native ? heldAfresh(row, n) : heldFor(server, row, n)), mostBytes);
      console.log(
        `${String(n).padStart(7)}  ${String(Math.round(held)).padStart(10)}  ${row.atMost.padEnd(20)} ${row.what}`,
      );
      expect.soft(held, `bytes held with ${n} of it`).toBeLessThan(mostBytes);
    }
    const stays = await leastOf(() => staysAfter(server, row), staysBytes);
    expect.soft(stays, "bytes that stay with each time").toBeLessThan(staysBytes);
  });
});

/** Does it in a new process: memory that was freed once would be taken again, and nothing would seem to be held. */
async function heldAfresh(row: HeldRow, n: number): Promise<number> {
  await using server = await startMeasuredServer();
  await server.ask("usePool");
  return await heldFor(server, row, n);
}

function bytesOf({ atMost }: HeldRow): number {
  const [count, size = ""] = atMost.split(" ");
  return Number(count) * (sizes.get(size) ?? Number.NaN);
}

/** Does it, and returns the bytes held for each unit of it. */
async function heldFor(server: MeasuredServer, row: HeldRow, n: number): Promise<number> {
  // Other threads go on decoding when nothing is read any more.
  const [bytes, quietAsks] = row.native ? (["residentBytes", 10] as const) : (["bytes", 3] as const);
  const before = (await server.ask("held"))[bytes];
  const { clients, units } = await row.run(server, n);
  const held = (await heldWhenQuiet(server, clients, quietAsks))[bytes];
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

/** Waits until the server has read whatever it is going to read, and grown as much as that makes it grow. */
async function heldWhenQuiet(
  server: MeasuredServer,
  clients: readonly RawClient[],
  quietAsks: number,
): Promise<Answers["held"]> {
  let mostBytes = 0;
  for (let before = "", quiet = 0; ;) {
    const held = await server.ask("held");
    mostBytes = Math.max(mostBytes, held.residentBytes);
    const steps = Math.trunc(mostBytes / stepBytes);
    const state = [held.readBytes, steps, ...clients.map(({ socket }) => socket.writableLength)].join();
    quiet = state === before ? quiet + 1 : 0;
    if (quiet === quietAsks) return held;
    before = state;
  }
}

/** Bytes by which a process may grow although it does nothing. */
const stepBytes = 8 * 1024 * 1024;
