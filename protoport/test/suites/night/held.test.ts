import { expect, test } from "vitest";
import { type Answers, type MeasuredServer, startMeasuredServer } from "../../support/costs/measured-server.ts";
import type { RawClient } from "../../support/costs/raw-client.ts";
import { leastOf } from "@protoport/testing/process";
import { type HeldRow, heldRows } from "../costs/held-rows.ts";

const sizes = new Map(Object.entries({ bytes: 1, KiB: 1024, MiB: 1024 * 1024 }));

/** A test case takes seconds, or minutes when all measurements are repeated five times on a busy machine. */
const timeout = 300_000;

/** Bytes that may remain afterwards, such as compiled code and grown tables. */
const staysBytes = 512 * 1024;

test.for(heldRows)("a server's memory for $what stays within its limit", { timeout }, async (row) => {
  const mostBytes = bytesOf(row);
  await using server = await startMeasuredServer();
  await server.ask("usePool");
  // Warms up, so that compiled code and other one-time allocations do not count.
  await heldFor(server, row, row.n);
  for (const n of [row.n, 4 * row.n]) {
    const held = await leastOf(() => (row.native ? heldAfresh(row, n) : heldFor(server, row, n)), mostBytes);
    console.log(
      `${String(n).padStart(7)}  ${String(Math.round(held)).padStart(10)}  ${row.atMost.padEnd(20)} ${row.what}`,
    );
    expect.soft(held, `bytes held for each of ${n}`).toBeLessThan(mostBytes);
  }
  const stays = await leastOf(() => staysAfter(server, row), staysBytes);
  expect.soft(stays, "bytes that remain after each repetition").toBeLessThan(staysBytes);
});

/** Runs a test case in a new process, because a process with freed memory would reuse the memory and not grow. */
async function heldAfresh(row: HeldRow, n: number): Promise<number> {
  await using server = await startMeasuredServer();
  await server.ask("usePool");
  return await heldFor(server, row, n);
}

function bytesOf({ atMost }: HeldRow): number {
  const [count, size = ""] = atMost.split(" ");
  return Number(count) * (sizes.get(size) ?? Number.NaN);
}

async function heldFor(server: MeasuredServer, row: HeldRow, n: number): Promise<number> {
  // Other threads continue to decode after the last read.
  const [bytes, quietAsks] = row.native ? (["residentBytes", 10] as const) : (["bytes", 3] as const);
  const before = (await server.ask("held"))[bytes];
  const { clients, units } = await row.run(server, n);
  const held = (await heldWhenQuiet(server, clients, quietAsks))[bytes];
  for (const client of clients) client[Symbol.dispose]();
  await server.ask("release");
  await server.ask("alone");
  return (held - before) / units;
}

async function staysAfter(server: MeasuredServer, row: HeldRow): Promise<number> {
  const before = (await server.ask("held")).bytes;
  await heldFor(server, row, 4 * row.n);
  return (await server.ask("held")).bytes - before;
}

/** Waits until the server has read all it can, and its memory does not grow any more. */
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

/** Bytes by which an idle process may grow. */
const stepBytes = 8 * 1024 * 1024;
