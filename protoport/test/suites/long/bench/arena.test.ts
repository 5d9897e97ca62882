import { afterAll, beforeAll, expect, test } from "vitest";
import meta from "../../../../bench/arena/meta.json" with { type: "json" };
import { type Entry, freePorts, rules, startEntry } from "../../../../bench/arena/validate.ts";

let entry: Entry;
beforeAll(async () => {
  entry = await startEntry(await freePorts());
});
afterAll(() => entry[Symbol.asyncDispose]());

test.each(rules)('the entry for HttpArena follows the $profile rule "$name"', ({ check }) => check(entry));

test("each profile in meta.json has rules", () => {
  expect(rules.map(({ profile }) => profile)).toEqual(expect.arrayContaining(meta.tests));
});

test("the HttpArena entry serves all profiles concurrently, drains, and restarts", async () => {
  const ports = await freePorts();
  for (const _ of ["first start", "second start"]) {
    await using started = await startEntry(ports);
    await Promise.all(rules.map(({ check }) => check(started)));
    started.server.process.kill("SIGTERM");
    expect(await started.server.end()).toBe(0);
  }
});
