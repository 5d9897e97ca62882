import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  Deletion,
  type DeletionState,
  type Ending,
  type EndingKind,
  endings,
  endRest,
  nothingDone,
  transitions,
} from "../../src/stores/deletion.ts";
import { deleteCall } from "../support/plants/delete-call.ts";

/** Returns a deletion in a state, and what its caller has got. */
function deletionIn(state: DeletionState): { readonly deletion: Deletion; readonly got: unknown[] } {
  const got: unknown[] = [];
  const listen = (what: unknown): void => void got.push(what);
  const deletion = new Deletion(7n, deleteCall(), listen, listen);
  if (state !== "queued") deletion.send();
  if (state === "deferred") deletion.defer();
  if (state === "ended" || state === "answered") deletion.decide(endings.absent);
  if (state === "answered") deletion.answer();
  expect(deletion.state).toBe(state);
  return { deletion, got };
}

const oneOfEach: Readonly<Record<EndingKind, Ending>> = {
  deleted: endings.deleted,
  absent: endings.absent,
  protected: endings.protected(7n),
  "key-reused": endings.keyReused(),
  "queue-full": endings.queueFull(),
  unavailable: endings.unavailable("away"),
  unknown: endings.unknown("lost"),
  cancelled: endings.cancelled(new Error("gone")),
};

const states: readonly DeletionState[] = ["queued", "sent", "deferred", "ended", "answered"];
const moves = {
  sent: (deletion: Deletion) => deletion.send(),
  deferred: (deletion: Deletion) => deletion.defer(),
};

describe.each(states)("a deletion that is %s", (state) => {
  test.each(["sent", "deferred"] as const)("becomes %s only if the table says so", (next) => {
    const { deletion } = deletionIn(state);
    const move = (): void => moves[next](deletion);
    if (transitions[state].next.includes(next)) expect(move).not.toThrow();
    else expect(move).toThrow(`a deletion that is ${state} cannot become ${next}`);
  });

  test.each(Object.values(oneOfEach))("ends as $kind only if the table says so, and only once", (ending) => {
    const { deletion, got } = deletionIn(state);
    const before = got.length;
    if (transitions[state].endings.includes(ending.kind)) {
      deletion.end(ending);
      expect(deletion).toMatchObject({ state: "answered", ending });
      expect(got).toEqual(["error" in ending ? ending.error : ending.kind === "deleted"]);
    }
    for (const other of Object.values(oneOfEach)) {
      if (deletion.state === state && transitions[state].endings.includes(other.kind)) continue;
      expect(() => deletion.end(other)).toThrow(/cannot become/);
    }
    deletion.answer();
    expect(got.length - before).toBeLessThanOrEqual(1);
  });
});

test.each(Object.values(oneOfEach))(
  "a deletion in doubt that ends as $kind never reports that nothing was done",
  (ending) => {
    const { deletion, got } = deletionIn(ending.kind === "queue-full" ? "deferred" : "sent");
    deletion.doubt("token");
    deletion.end(ending);
    expect(deletion.ending?.kind).toBe(nothingDone.includes(ending.kind) ? "unknown" : ending.kind);
    if (nothingDone.includes(ending.kind)) expect(got).toMatchObject([{ errorCode: "ERR_OUTCOME_UNKNOWN" }]);
  },
);

test("a failed batch ends what it has left open or deferred; a successful one leaves only deferred deletions", () => {
  for (const failure of [undefined, endings.unavailable("away")]) {
    const [open, deferred, ended] = (["sent", "deferred", "ended"] as const).map((state) => deletionIn(state).deletion);
    endRest(
      [open, deferred, ended].flatMap((one) => one ?? []),
      failure,
    );
    expect([open, deferred, ended].map((one) => one?.ending?.kind)).toEqual(
      failure === undefined ? ["unknown", undefined, "absent"] : ["unavailable", "unavailable", "absent"],
    );
  }
});

function listOf(names: readonly string[]): string {
  return names.map((name) => name.replace("-", " ")).join(", ") || "none";
}

const page = join(import.meta.dirname, "../../docs/explanation/storage.md");

// `npx vitest run test/stores/deletion.test.ts -u` updates the table.
test("the table of transitions in docs/explanation/storage.md is that of the code", async () => {
  const rows = states.map((state) => {
    const { next, endings: ends } = transitions[state];
    return `| ${state} | ${listOf(next)} | ${listOf(ends)} |\n`;
  });
  const text = readFileSync(page, "utf8");
  const table = /(?<=\n\| state \| next state \| ending \|\n\|---\|---\|---\|\n)(?:\|.*\n)*/;
  expect(text).toMatch(table);
  await expect(text.replace(table, rows.join(""))).toMatchFileSnapshot(page);
});

test("docs/explanation/storage.md draws each state and the error of each ending", () => {
  const text = readFileSync(page, "utf8");
  const [, section = ""] = /## The states of a deletion\n([^]*?)\n## /.exec(text) ?? [];
  const drawn = ["queued", "sent", "deferred", "in doubt"].filter((state) => !section.includes(state));
  expect(drawn).toEqual([]);
  const errors = Object.values(oneOfEach).flatMap((one) => ("error" in one ? [one.error] : []));
  const codes = errors.flatMap((error) =>
    error instanceof Object && "errorCode" in error ? [String(error.errorCode)] : [],
  );
  expect(codes.filter((code) => !section.includes(code))).toEqual(["ERR_IDEMPOTENCY_KEY_REUSED"]);
  expect(oneOfEach.unavailable).toMatchObject({ error: { code: Code.Unavailable } });
});
