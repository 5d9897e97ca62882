import { expect, test } from "vitest";
import { Notices } from "../../src/command/notices.ts";

test("Notices logs each new conflict, up to 20 per reload", () => {
  const lines: string[] = [];
  const log = new Notices({ out: () => undefined, err: (line) => void lines.push(line) });
  const record = (...conflicts: readonly (readonly string[])[]): readonly string[] => {
    for (const [at, each] of conflicts.entries()) {
      const name = `upstream dns:${at}:1`;
      log.state(
        name,
        each.map((line) => `${name}: ${line}`),
        "more services or routes belong to others",
      );
    }
    return lines.splice(0);
  };
  expect(record([], ["a"])).toEqual(["upstream dns:1:1: a"]);
  expect(record(["a"], ["a", "b"])).toEqual(["upstream dns:0:1: a", "upstream dns:1:1: b"]);
  expect(record([], ["b"])).toEqual([]);
  // A conflict that disappears and returns is logged again.
  expect(record([], ["a", "b"])).toEqual(["upstream dns:1:1: a"]);
  const many = record(Array.from({ length: 25 }, (_, at) => String(at)));
  expect([many.length, many[20]]).toEqual([21, "upstream dns:0:1: 5 more services or routes belong to others"]);
});
