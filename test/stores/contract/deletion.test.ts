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
  TransitionError,
  transitions,
} from "../../../src/stores/contract/deletion.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";

/** The steps from a new deletion to each state. */
const stepsTo: Readonly<Record<DeletionState, readonly ((deletion: Deletion) => void)[]>> = {
  queued: [],
  sent: [(one) => one.send()],
  "in-doubt": [(one) => one.send(), (one) => one.doubt("token")],
  deferred: [(one) => one.send(), (one) => one.defer()],
  "deferred-in-doubt": [(one) => one.send(), (one) => one.doubt("token"), (one) => one.defer()],
  ended: [(one) => one.send(), (one) => one.decide(endings.absent)],
  settled: [(one) => one.send(), (one) => one.end(endings.absent)],
};

/** Returns a deletion in a state, and what its caller has received. */
function deletionIn(state: DeletionState): { readonly deletion: Deletion; readonly got: unknown[] } {
  const got: unknown[] = [];
  const listen = (what: unknown): void => void got.push(what);
  const deletion = new Deletion(7n, deleteCall(), listen, listen);
  for (const step of stepsTo[state]) step(deletion);
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
  "outcome-unknown": endings.outcomeUnknown("lost"),
  cancelled: endings.cancelled(new Error("gone")),
};

const states: readonly DeletionState[] = [
  "queued",
  "sent",
  "in-doubt",
  "deferred",
  "deferred-in-doubt",
  "ended",
  "settled",
];

/** The steps. `to` returns the state after a step, or `undefined` if the step is not allowed. */
const moves: readonly {
  readonly name: string;
  readonly move: (one: Deletion) => void;
  readonly to: (isInDoubt: boolean) => DeletionState | undefined;
}[] = [
  { name: "is sent", move: (one) => one.send(), to: (isInDoubt) => (isInDoubt ? "in-doubt" : "sent") },
  {
    name: "is deferred",
    move: (one) => one.defer(),
    to: (isInDoubt) => (isInDoubt ? "deferred-in-doubt" : "deferred"),
  },
  {
    name: "gets another token",
    move: (one) => one.doubt("another token"),
    to: (isInDoubt) => (isInDoubt ? undefined : "in-doubt"),
  },
];

describe.each(states)("a deletion in the state %s", (state) => {
  test.each(moves)("$name only if the transition table allows it", ({ move, to }) => {
    const { deletion } = deletionIn(state);
    const before = deletion.token;
    const next = to(before !== undefined);
    const isAllowed = next !== undefined && transitions[state].next.includes(next);
    if (isAllowed) move(deletion);
    else expect(() => move(deletion)).toThrow(TransitionError);
    expect(deletion.state).toBe(isAllowed ? next : state);
    if (before !== undefined) expect(deletion.token).toBe(before);
  });

  test.each(Object.values(oneOfEach))("ends as $kind at most once, if the transition table allows it", (ending) => {
    const { endings: allowed, becomeUnknown = [] } = transitions[state];
    const { deletion, got } = deletionIn(state);
    const before = got.length;
    const becomesUnknown = becomeUnknown.includes(ending.kind);
    if (allowed.includes(ending.kind) || becomesUnknown) {
      deletion.end(ending);
      expect(deletion.state).toBe("settled");
      if (becomesUnknown) expect(got).toMatchObject([{ errorCode: "ERR_OUTCOME_UNKNOWN" }]);
      else expect(got).toEqual(["error" in ending ? ending.error : ending.kind === "deleted"]);
    }
    for (const other of Object.values(oneOfEach)) {
      if (deletion.state === state && [...allowed, ...becomeUnknown].includes(other.kind)) continue;
      expect(() => deletion.end(other)).toThrow(/^a deletion that is .* cannot become /);
    }
    deletion.settle();
    expect(got.length - before).toBeLessThanOrEqual(1);
  });
});

test("these tests cover all states in the table", () => {
  expect(states).toEqual(Object.keys(transitions));
});

test('a deletion in doubt cannot end as "not deleted"', () => {
  const reached = new Set<DeletionState>(["in-doubt"]);
  for (const state of reached) for (const next of transitions[state].next) reached.add(next);
  expect([...reached]).toEqual(["in-doubt", "deferred-in-doubt"]);
  expect([...reached].flatMap((state) => transitions[state].endings)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/unavailable|queue-full/)]),
  );
});

test("a deletion can be marked in doubt twice with the same token", () => {
  const { deletion } = deletionIn("in-doubt");
  deletion.doubt("token");
  expect(deletion).toMatchObject({ state: "in-doubt", token: "token" });
});

test("a deferred deletion cannot be marked in doubt, even with its token", () => {
  expect(() => deletionIn("deferred-in-doubt").deletion.doubt("token")).toThrow(TransitionError);
});

function listOf(names: readonly string[]): string {
  return names.map((name) => name.replaceAll("-", " ")).join(", ") || "none";
}

const page = join(import.meta.dirname, "../../../docs/explanation/storage.md");

// `npx vitest run test/stores/contract/deletion.test.ts -u` updates the table.
test("docs/explanation/storage.md has the code's transition table", async () => {
  const rows = states.map((state) => {
    const { next, endings: ends, becomeUnknown } = transitions[state];
    const unknown = becomeUnknown && `outcome unknown (also for ${listOf(becomeUnknown)})`;
    const ending = listOf(ends).replace("outcome unknown", (name) => unknown ?? name);
    return `| ${listOf([state])} | ${listOf(next)} | ${ending} |\n`;
  });
  const text = readFileSync(page, "utf8");
  const table = /(?<=\n\| state \| next state \| ending \|\n\|---\|---\|---\|\n)(?:\|.*\n)*/;
  expect(text).toMatch(table);
  await expect(text.replace(table, rows.join(""))).toMatchFileSnapshot(page);
});

test("docs/explanation/storage.md names each state and error of a deletion", () => {
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
