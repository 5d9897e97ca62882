import { UsageError } from "@protoport/command-line";
import { movePlants, openMovableStore, reopenPlants } from "../stores/index.ts";
import { plantLocationOf } from "../server/index.ts";
import { exitCode, type Command, formatInteger, type PlantTerminal, startClock } from "./command.ts";

/** The `move` command, which moves everything in a store to an empty store. */
export const moveCommand: Command = {
  name: "move",
  summary: "move plants, deletion records and idempotency keys to another store; servers of both fail meanwhile",
  operands: [
    { name: "FROM", about: "the store to read: sqlite:<file> or postgres://…; no server can use it afterwards" },
    { name: "TO", about: "an empty store, which `migrate` has created" },
  ],
  notes: [
    "Moves everything or nothing. After an interruption, run it again, or undo it with `migrate --reopen FROM TO`.",
    "`export`, `deletions` and `backup` still read FROM, and `check` reports where it was moved.",
  ],
  run: async (_flags, [from = "", to = ""], terminal) => {
    const elapsed = startClock();
    await using stores = await openStores(from, to);
    const { source, target } = stores;
    const counts = await movePlants(source, target, (what, rows) =>
      terminal.progress?.(`${formatInteger(rows)} ${what}`),
    ).finally(() => terminal.progress?.(""));
    if (counts === undefined) {
      terminal.err(`nothing to move: an earlier run has moved ${source.name} to ${target.name}`);
      return exitCode.ok;
    }
    terminal.out(`plants: ${counts.plants}\ndeletion records: ${counts.records}\nidempotency keys: ${counts.keys}`);
    terminal.err(`moved ${source.name} to ${target.name} in ${elapsed()}`);
    return exitCode.ok;
  },
};

/** Undoes an interrupted move, for the flag `--reopen` of the command `migrate`. Returns the exit code. */
export async function reopenStores([from, to]: readonly string[], terminal: PlantTerminal): Promise<number> {
  // The source alone must not be reopened, because only the target knows whether the move has finished.
  if (from === undefined || to === undefined)
    throw new UsageError("--reopen requires FROM and TO of the interrupted move");
  await using stores = await openStores(from, to);
  await reopenPlants(stores.source, stores.target);
  terminal.err(`reopened ${stores.target.name} and ${stores.source.name}`);
  return exitCode.ok;
}

async function openStores(from: string, to: string) {
  const [sourceLocation, targetLocation] = [storeLocationOf("FROM", from), storeLocationOf("TO", to)];
  await using opening = new AsyncDisposableStack();
  const source = opening.use(await openMovableStore(sourceLocation, "source"));
  const target = opening.use(await openMovableStore(targetLocation, "target"));
  const opened = opening.move();
  return { source, target, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

function storeLocationOf(operand: string, url: string): ReturnType<typeof plantLocationOf> {
  try {
    return plantLocationOf(url);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(message.replaceAll("DATABASE_URL", operand));
  }
}
