import { movePlants, openLockedStore, plantLocationOf, type StoreCounts } from "../server/index.ts";
import { exitCode, type Command, UsageError } from "./command.ts";
import { formatInteger } from "./import-progress.ts";
import { startClock } from "./start-clock.ts";

/** The `move` command, which copies everything in a store to an empty store. No server may use either store. */
export const moveCommand: Command = {
  name: "move",
  summary: "copy plants, deletion records and idempotency keys to another store; no server may use either",
  operands: [
    { name: "FROM", about: "the store to read: sqlite:<file> or postgres://…; it is not changed" },
    { name: "TO", about: "an empty store, which `migrate` has created" },
  ],
  notes: [
    "Adds everything or nothing. After an interruption, run it again.",
    "With PostgreSQL, it first watches for 11 s whether a server uses the store.",
  ],
  run: async (_flags, [from = "", to = ""], terminal) => {
    const [source, target] = [locationOf("FROM", from), locationOf("TO", to)];
    const elapsed = startClock();
    await using reading = await openLockedStore(source, { isReadOnly: true });
    await using writing = await openLockedStore(target, { isReadOnly: false, refused: reading.identity });
    const counts = await movePlants(reading, writing, (what, rows) =>
      terminal.progress?.(`${formatInteger(rows)} ${what}`),
    ).finally(() => terminal.progress?.(""));
    for (const line of describe(counts)) terminal.out(line);
    terminal.err(`moved ${reading.name} to ${writing.name} in ${elapsed()}; do not serve ${reading.name} any more`);
    return exitCode.ok;
  },
};

function locationOf(operand: string, url: string): ReturnType<typeof plantLocationOf> {
  try {
    return plantLocationOf(url);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(message.replaceAll("DATABASE_URL", operand));
  }
}

function describe({ plants, records, keys }: StoreCounts): readonly string[] {
  return [`plants: ${plants}`, `deletion records: ${records}`, `idempotency keys: ${keys}`];
}
