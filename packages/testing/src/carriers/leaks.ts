import { expect } from "vitest";
import { within } from "../deadline.ts";
import { collectGarbage } from "./held-bytes.ts";

/** Rounds in which a leak has to show: one in which nothing grew shows that nothing does. */
const rounds = 4;

/**
 * Expects work to leave nothing behind: neither open resources nor more than `limitBytes` of the heap.
 *
 * A leak is in every round of the work. What the process keeps once (compiled code, grown tables) comes in some
 * round or other, so the round that grew least is the one that counts.
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

/** Returns what is in `all` and not in `some`. A timeout that was open before the work, and is over now, is not a leak. */
function without(all: readonly string[], some: readonly string[]): string[] {
  const left = [...some];
  return all.filter((one) => {
    const at = left.indexOf(one);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

async function settle(): Promise<{ heapBytes: number; resources: string[] }> {
  await within(socketsClosed(), "every connection to be closed");
  collectGarbage();
  // An immediate is work for this very turn.
  const resources = process.getActiveResourcesInfo().filter((resource) => resource !== "Immediate");
  return { heapBytes: process.memoryUsage().heapUsed, resources };
}

async function socketsClosed(): Promise<void> {
  while (process.getActiveResourcesInfo().includes("TCPSocketWrap")) await new Promise(setImmediate);
}
