// oxfmt-ignore
import { array, type Arbitrary, type AsyncCommand, boolean, commands, constant, constantFrom, nat, oneof, option,
  record } from "fast-check";
import { expect } from "vitest";
import type { PlantModel } from "./plant-model.ts";
import type { Call, StoreHost } from "./store-host.ts";

type Command = AsyncCommand<PlantModel, StoreHost>;
let requests = 0;

/** Wraps a command, after which the store must contain what the model contains. */
function command(name: string, run: (model: PlantModel, host: StoreHost) => Promise<void>): Command {
  return {
    check: () => true,
    run: async (model, host) => {
      await run(model, host);
      expect(await host.plants()).toEqual([...model.plants].toSorted((a, b) => a - b));
      const stored = await host.database.records();
      model.forget(stored);
      expect(stored).toEqual(model.records);
    },
    toString: () => name,
  };
}

function importCommand(ids: readonly number[], isRestore: boolean): Command {
  return command(`import(${ids.join()}${isRestore ? ", restore" : ""})`, async (model, host) => {
    await host.import(ids, isRestore);
    model.import(ids, isRestore);
  });
}

type Asked = Omit<Call, "requestId">;
/** A crash after some responses. */
type Crash = { readonly kind: "process" | "database"; readonly after: number };

function deleteCommand(asked: readonly Asked[], crash: Crash | undefined): Command {
  const text = asked.map(({ id, subject, key = "" }) => `${id} ${subject} ${key}`.trim()).join("; ");
  const name = `delete(${text})${crash === undefined ? "" : `, ${crash.kind} killed after ${crash.after}`}`;
  return command(name, async (model, host) => {
    const calls = asked.map((call) => ({ ...call, requestId: `request-${++requests}` }));
    // SQLite has no server that could crash.
    const kind = host.database.crash === undefined && crash !== undefined ? "process" : crash?.kind;
    const run = async (): Promise<void> => (kind === "process" ? await host.kill() : await host.database.crash?.());
    const after = Math.min(crash?.after ?? 0, calls.length);
    const outcomes = await host.delete(calls, crash && { after, run });
    if (kind === "process") await host.start();
    model.delete(calls, outcomes, await host.database.records(), kind);
  });
}

/** Repeats a performed deletion with a key, whose plant may have been restored. */
function repeatCommand(which: number): Command {
  return command(`repeat(${which})`, async (model, host) => {
    const keyed = model.lasting.filter(({ key }) => key !== undefined);
    const earlier = keyed[which % Math.max(1, keyed.length)];
    if (earlier === undefined) return;
    const call = { ...earlier, requestId: `request-${++requests}` };
    expect([...(await host.delete([call])).values()]).toEqual(["deleted"]);
  });
}

const restartCommand = command("restart", async (_, host) => {
  await host.close();
  await host.start();
});

const killCommand = command("kill", async (_, host) => {
  await host.kill();
  await host.start();
});

const sweepCommand = command("sweep", async (model, host) => {
  await host.close();
  await host.database.age();
  model.expire();
  const kept = host.database.keepsNewest ? model.records.slice(-1) : [];
  // The sweep begins when the store opens.
  await host.start();
  await expect.poll(() => host.database.records(), { timeout: 10_000 }).toEqual(kept);
});

function restoreCommand(between: readonly Asked[]): Command {
  return command(`restore(after ${between.length} deletions)`, async (model, host) => {
    const restore = host.database.backUp?.();
    if (restore === undefined) return;
    const backup = model.clone();
    await host.delete(between.map((call) => ({ ...call, requestId: `request-${++requests}` })));
    await host.close();
    restore();
    model.assign(backup);
    await host.start();
  });
}

export const plants: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8];
const ids = constantFrom(...plants);
const asked = record({
  id: ids,
  subject: constantFrom("alice", "bob"),
  key: option(constantFrom("key-1", "key-2", "key-3", "key-4"), { nil: undefined }),
});
const crash = record({ kind: constantFrom("process" as const, "database" as const), after: nat(4) });

export const storeCommands: Arbitrary<Iterable<Command>> = commands(
  [
    array(ids, { minLength: 1 }).chain((imported) => boolean().map((isRestore) => importCommand(imported, isRestore))),
    array(asked, { minLength: 1, maxLength: 6 }).map((calls) => deleteCommand(calls, undefined)),
    array(asked, { minLength: 1, maxLength: 6 }).chain((calls) => crash.map((one) => deleteCommand(calls, one))),
    nat(20).map(repeatCommand),
    oneof(constant(restartCommand), constant(killCommand), constant(sweepCommand)),
    array(asked, { maxLength: 3 }).map(restoreCommand),
  ],
  { maxCommands: 20, size: "max" },
);
