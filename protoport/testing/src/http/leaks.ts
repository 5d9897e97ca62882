import { expect } from "vitest";
import { within } from "../deadline.ts";
import { collectGarbage } from "./retained-bytes.ts";

/** Maximum number of rounds. A single round without growth proves that the work leaks nothing. */
const rounds = 4;

/**
 * Expects that work leaks neither open resources nor more than `limitBytes` on the heap.
 *
 * A leak occurs in every round, but one-time allocations only in some, so the least growth counts.
 */
export async function expectNothingKept(work: () => Promise<void>, limitBytes: number): Promise<void> {
  const growths: number[] = [];
  let before = await settle();
  while (growths.length < rounds && !growths.some((growth) => growth < limitBytes)) {
    await work();
    const after = await settle();
    expect(without(after.resources, before.resources)).toEqual([]);
    growths.push(after.heapBytes - before.heapBytes);
    before = after;
  }
  expect(Math.min(...growths), `growth of ${growths.join(", ")} bytes`).toBeLessThan(limitBytes);
}

/** Returns the items in `all` that are not in `some`. A timer that ended during the work is not a leak. */
function without(all: readonly string[], some: readonly string[]): string[] {
  const remaining = [...some];
  return all.filter((one) => {
    const at = remaining.indexOf(one);
    if (at >= 0) remaining.splice(at, 1);
    return at < 0;
  });
}

async function settle(): Promise<{ heapBytes: number; resources: string[] }> {
  await within(socketsClosed(), "every connection to be closed");
  collectGarbage();
  // An Immediate belongs to the current turn.
  const resources = process.getActiveResourcesInfo().filter((resource) => resource !== "Immediate");
  return { heapBytes: process.memoryUsage().heapUsed, resources };
}

async function socketsClosed(): Promise<void> {
  while (process.getActiveResourcesInfo().includes("TCPSocketWrap")) await new Promise(setImmediate);
}
