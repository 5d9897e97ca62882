import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { exitCode } from "../../src/command/command.ts";
import type { Outcome } from "../../src/stores/contract/backend.ts";
import { copiesOf, type PlantLocation, promisesOf } from "../../src/stores/index.ts";
import { deleteCall, openQueueOn } from "../support/plants/index.ts";

// The tables of outcomes and databases in docs/explanation/storage.md.

const page = readFileSync(new URL("../../docs/explanation/storage.md", import.meta.url), "utf8");

/** Returns the cells of the table whose head begins with this text. */
function rowsBelow(head: string): readonly (readonly string[])[] {
  const [table = ""] = page.slice(page.indexOf(head)).split("\n\n", 1);
  const rows = table.split("\n").slice(2);
  const cells = rows.map((row) => row.split(/(?<!\\)\|/).slice(1, -1));
  return cells.map((row) => row.map((cell) => cell.trim()));
}

// oxfmt-ignore
const outcomes: Readonly<Record<Outcome, true>> = {
  deleted: true, absent: true, protected: true, "key-reused": true, locked: true, unavailable: true, unknown: true,
};

const documented = rowsBelow("| outcome |").map(([name = "", gets = ""]) => {
  const outcome = Object.keys(outcomes).find((each): each is Outcome => each === name.replace(" ", "-"));
  return { name, outcome, errorCode: /`(ERR_\w+)`/.exec(gets)?.[1] };
});

test("the table of outcomes lists every outcome", () =>
  expect(documented.map(({ outcome }) => outcome)).toEqual(Object.keys(outcomes)));

test.each(documented)("a caller gets $errorCode for the outcome $name, as documented", async (row) => {
  const { outcome, errorCode } = row;
  let attempts = 0;
  // A locked plant is tried again, and then deleted.
  const queue = openQueueOn(async () => ({ outcomes: [++attempts === 1 && outcome ? outcome : "deleted"] }));
  const result = await queue.delete(1n, deleteCall()).catch((reason: unknown) => reason);
  await queue.close();
  if (outcome === "absent") expect(result).toBe(false);
  else if (errorCode === undefined) expect(result).toBe(true);
  else expect(result).toMatchObject({ errorCode });
  expect(attempts).toBe(outcome === "locked" ? 2 : 1);
});

const locations: readonly PlantLocation[] = [
  { kind: "sqlite", path: "plants.db" },
  { kind: "postgres", url: "postgres://db/plants" },
];

test.each(locations.map((location, at) => ({ kind: location.kind, location, column: at + 1 })))(
  "the table of databases agrees with the row of $kind",
  ({ kind, location, column }) => {
    const cells = new Map(rowsBelow("| | SQLite |").map((row) => [row[0], row[column] ?? ""]));
    const copies = copiesOf(location);
    expect(cells.get("servers")).toContain(promisesOf(kind).isShared ? "also with `--workers`" : "without `--workers`");
    expect(cells.get("backups")).toContain(typeof copies === "string" ? copies : "`backup` and `restore`");
    expect(cells.has(`exits with code ${exitCode.storeFailed}`)).toBe(true);
  },
);
