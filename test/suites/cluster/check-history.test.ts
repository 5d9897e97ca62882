import { expect, test } from "vitest";
import { type Call, checkHistory, type FinalTables, type History, type Outcome } from "./check-history.ts";

function call(name: string, outcome: Outcome, startedMs: number = 0, endedMs: number = startedMs + 1): Call {
  return { name, plant: 1, outcome, startedMs, endedMs };
}

function history(...calls: readonly Call[]): History {
  return { created: new Set([1]), perhapsCreated: new Set(), calls };
}

const kept: FinalTables = { plants: new Set([1]), records: [] };

function deletedBy(...names: readonly string[]): FinalTables {
  return { plants: new Set(), records: names.map((name) => ({ plant: 1, call: name })) };
}

test.each<[name: string, calls: Call[], tables: FinalTables]>([
  ["one call deletes, a later one finds nothing", [call("a", "deleted"), call("b", "not found", 5)], deletedBy("a")],
  ["a call beside the deletion finds nothing", [call("a", "deleted", 0, 9), call("b", "not found", 2)], deletedBy("a")],
  ["a call without an answer has deleted", [call("a", "unknown"), call("b", "not found", 5)], deletedBy("a")],
  ["a call without an answer has not deleted", [call("a", "unknown")], kept],
  ["a call is refused", [call("a", "refused")], kept],
])("finds nothing where %s", (_, calls, tables) => {
  expect(checkHistory(history(...calls), tables)).toEqual({ lost: [], doubled: [], untrue: [] });
});

test.each<[name: string, calls: Call[], tables: FinalTables, kind: "lost" | "doubled" | "untrue"]>([
  ["a plant is back that was deleted", [call("a", "deleted")], kept, "lost"],
  ["a plant is gone without a record", [], deletedBy(), "lost"],
  ["a plant is there beside its record", [call("a", "deleted")], { ...deletedBy("a"), plants: new Set([1]) }, "lost"],
  ["a plant has two records", [call("a", "deleted"), call("b", "unknown")], deletedBy("a", "b"), "doubled"],
  ["a record is of a call that nobody made", [], deletedBy("x"), "doubled"],
  ["two callers are told that they deleted", [call("a", "deleted"), call("b", "deleted", 5)], deletedBy("a"), "untrue"],
  ["a plant is not found that is there", [call("a", "not found")], kept, "untrue"],
  [
    "a plant is not found before it is deleted",
    [call("a", "not found"), call("b", "deleted", 5)],
    deletedBy("b"),
    "untrue",
  ],
  ["a call does not find what it has deleted", [call("a", "not found")], deletedBy("a"), "untrue"],
  ["a call is refused that has deleted", [call("a", "refused")], deletedBy("a"), "untrue"],
])("finds that %s", (_, calls, tables, kind) => {
  expect(checkHistory(history(...calls), tables)).toMatchObject({ [kind]: [expect.any(String)] });
});

test("finds a plant that nobody has created", () => {
  const tables = { plants: new Set([1, 2]), records: [] };
  expect(checkHistory(history(), tables).doubled).toEqual(["plant 2 was never created"]);
  expect(checkHistory({ ...history(), perhapsCreated: new Set([2]) }, tables).doubled).toEqual([]);
});
