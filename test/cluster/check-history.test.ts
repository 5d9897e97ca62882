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

test.each<{ name: string; calls: Call[]; tables: FinalTables }>([
  {
    name: "one call deletes, a later one finds nothing",
    calls: [call("a", "deleted"), call("b", "not found", 5)],
    tables: deletedBy("a"),
  },
  {
    name: "a call beside the deletion finds nothing",
    calls: [call("a", "deleted", 0, 9), call("b", "not found", 2)],
    tables: deletedBy("a"),
  },
  {
    name: "a call without an answer has deleted",
    calls: [call("a", "unknown"), call("b", "not found", 5)],
    tables: deletedBy("a"),
  },
  { name: "a call without an answer has not deleted", calls: [call("a", "unknown")], tables: kept },
  { name: "a call is refused", calls: [call("a", "refused")], tables: kept },
])("finds nothing where $name", ({ calls, tables }) => {
  expect(checkHistory(history(...calls), tables)).toEqual({ lost: [], doubled: [], untrue: [] });
});

test.each<{ name: string; calls: Call[]; tables: FinalTables; kind: "lost" | "doubled" | "untrue" }>([
  { name: "a plant is back that was deleted", calls: [call("a", "deleted")], tables: kept, kind: "lost" },
  { name: "a plant is gone without a record", calls: [], tables: deletedBy(), kind: "lost" },
  {
    name: "a plant is there beside its record",
    calls: [call("a", "deleted")],
    tables: { ...deletedBy("a"), plants: new Set([1]) },
    kind: "lost",
  },
  {
    name: "a plant has two records",
    calls: [call("a", "deleted"), call("b", "unknown")],
    tables: deletedBy("a", "b"),
    kind: "doubled",
  },
  { name: "a record is of a call that nobody made", calls: [], tables: deletedBy("x"), kind: "doubled" },
  {
    name: "two callers are told that they deleted",
    calls: [call("a", "deleted"), call("b", "deleted", 5)],
    tables: deletedBy("a"),
    kind: "untrue",
  },
  { name: "a plant is not found that is there", calls: [call("a", "not found")], tables: kept, kind: "untrue" },
  {
    name: "a plant is not found before it is deleted",
    calls: [call("a", "not found"), call("b", "deleted", 5)],
    tables: deletedBy("b"),
    kind: "untrue",
  },
  {
    name: "a call does not find what it has deleted",
    calls: [call("a", "not found")],
    tables: deletedBy("a"),
    kind: "untrue",
  },
  { name: "a call is refused that has deleted", calls: [call("a", "refused")], tables: deletedBy("a"), kind: "untrue" },
])("finds that $name", ({ calls, tables, kind }) => {
  expect(checkHistory(history(...calls), tables)).toMatchObject({ [kind]: [expect.any(String)] });
});

test("finds a plant that nobody has created", () => {
  const tables = { plants: new Set([1, 2]), records: [] };
  expect(checkHistory(history(), tables).doubled).toEqual(["plant 2 was never created"]);
  expect(checkHistory({ ...history(), perhapsCreated: new Set([2]) }, tables).doubled).toEqual([]);
});
