import { expect, test } from "vitest";
import {
  type Call,
  checkHistory,
  type FinalTables,
  type History,
  type Outcome,
} from "../suites/cluster/check-history.ts";

function call(name: string, outcome: Outcome, startedMs: number = 0, endedMs: number = startedMs + 1): Call {
  return { name, plant: 1, outcome, startedMs, endedMs };
}

const history = (...calls: readonly Call[]): History => ({ created: new Set([1]), perhapsCreated: new Set(), calls });

const kept: FinalTables = { plants: new Set([1]), records: [] };

function deletedBy(...names: readonly string[]): FinalTables {
  return { plants: new Set(), records: names.map((name) => ({ plant: 1, call: name })) };
}

test.each<[name: string, calls: Call[], tables: FinalTables]>([
  ["a call finds nothing after a deletion", [call("a", "deleted"), call("b", "not found", 5)], deletedBy("a")],
  ["a call finds nothing during a deletion", [call("a", "deleted", 0, 9), call("b", "not found", 2)], deletedBy("a")],
  ["a call without a response deletes the plant", [call("a", "unknown"), call("b", "not found", 5)], deletedBy("a")],
  ["a call without a response deletes nothing", [call("a", "unknown")], kept],
  ["a call is refused", [call("a", "refused")], kept],
])("if %s, checkHistory reports no violation", (_, calls, tables) => {
  expect(checkHistory(history(...calls), tables)).toEqual({ lost: [], doubled: [], wrong: [] });
});

test.each<[name: string, calls: Call[], tables: FinalTables, kind: "lost" | "doubled" | "wrong"]>(
  // oxfmt-ignore
  [
    ["a deleted plant exists again", [call("a", "deleted")], kept, "lost"],
    ["a missing plant has no record", [], deletedBy(), "lost"],
    ["a plant with a deletion record exists", [call("a", "deleted")], { ...deletedBy("a"), plants: new Set([1]) },
      "lost"],
    ["a plant has two records", [call("a", "deleted"), call("b", "unknown")], deletedBy("a", "b"), "doubled"],
    ["a record names an unknown call", [], deletedBy("x"), "doubled"],
    ["two calls report a deletion", [call("a", "deleted"), call("b", "deleted", 5)], deletedBy("a"), "wrong"],
    ["an existing plant is reported as missing", [call("a", "not found")], kept, "wrong"],
    ["a plant is reported as missing before its deletion", [call("a", "not found"), call("b", "deleted", 5)],
      deletedBy("b"), "wrong"],
    ["a call deletes the plant but reports it as missing", [call("a", "not found")], deletedBy("a"), "wrong"],
    ["a refused call deletes the plant", [call("a", "refused")], deletedBy("a"), "wrong"],
  ],
)("if %s, checkHistory reports a violation", (_, calls, tables, kind) => {
  expect(checkHistory(history(...calls), tables)).toMatchObject({ [kind]: [expect.any(String)] });
});

test("checkHistory reports a plant that was never created", () => {
  const tables = { plants: new Set([1, 2]), records: [] };
  expect(checkHistory(history(), tables).doubled).toEqual(["plant 2 was never created"]);
  expect(checkHistory({ ...history(), perhapsCreated: new Set([2]) }, tables).doubled).toEqual([]);
});
