import { expect, test } from "vitest";
import { type OpenItem, OpenList } from "../../src/engine/open-list.ts";

interface Item extends OpenItem {
  readonly name: string;
}

function listOf(...names: readonly string[]): { readonly list: OpenList<Item>; readonly items: readonly Item[] } {
  const list = new OpenList<Item>();
  const items = names.map((name) => ({ name }));
  for (const item of items) list.add(item);
  return { list, items };
}

const namesIn = (list: OpenList<Item>): string =>
  Array.from(list, ({ name }) => name)
    .toSorted()
    .join("");

test.each([
  { removed: [0], rest: "bcd" },
  { removed: [3], rest: "abc" },
  { removed: [1, 3], rest: "ac" },
  { removed: [0, 0], rest: "bcd" },
  { removed: [3, 2, 1, 0], rest: "" },
  { removed: [0, 1, 2, 3], rest: "" },
])("the list contains only $rest after the items at $removed are removed", ({ removed, rest }) => {
  const { list, items } = listOf("a", "b", "c", "d");
  const other = listOf("a", "b", "c", "d");
  for (const at of removed) {
    const item = items[at];
    if (item !== undefined) list.delete(item);
    // Another list has an item at the same position.
    if (item !== undefined) other.list.delete(item);
  }
  expect([namesIn(list), list.size, namesIn(other.list)]).toEqual([rest, rest.length, "abcd"]);
});

test("a removed item can be added again", () => {
  const { list, items } = listOf("a", "b");
  const [first] = items;
  if (first === undefined) throw new TypeError("the list is empty");
  list.delete(first);
  list.add(first);
  expect(namesIn(list)).toBe("ab");
});

test("an iteration visits items that it removes, and all others", () => {
  const { list } = listOf("a", "b", "c");
  const visited: string[] = [];
  for (const item of list) {
    visited.push(item.name);
    list.delete(item);
  }
  expect([visited.toSorted(), list.size]).toEqual([["a", "b", "c"], 0]);
});
