import { openPlantDatabase, parseId } from "../server/index.ts";
import { exitCode, type Command, type GivenFlags, textOf, UsageError } from "./command.ts";
import { parseDurationMs } from "./duration.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Prints the deletion records. */
export const deletionsCommand: Command = {
  name: "deletions",
  summary: "print the deletion records, one JSON object per line, oldest first",
  flags: {
    since: { value: "TIME", about: "omit older records, for example 24h or 2030-01-31T12:00:00Z" },
    plant: { value: "ID", about: "only those of this plant" },
    ...databaseFlag,
  },
  run: async (flags, _operands, terminal) => {
    const filter = { since: sinceOf(flags), plantId: plantOf(flags) };
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const run of database.listDeletions(filter)) {
      // As text: JSON numbers of this size lose digits.
      const lines = run.map((deletion) => JSON.stringify({ ...deletion, plantId: String(deletion.plantId) }));
      await terminal.write(`${lines.join("\n")}\n`);
    }
    return exitCode.ok;
  },
};

// RFC 3339, or a date for its midnight in UTC; Date would also accept "5" and "tomorrow 12".
const dateTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/;

function sinceOf(flags: GivenFlags): Date | undefined {
  const text = textOf(flags["since"]);
  if (text === undefined) return undefined;
  const agoMs = parseDurationMs(text);
  if (agoMs !== undefined) return new Date(Date.now() - agoMs);
  const since = new Date(text);
  if (dateTime.test(text) && !Number.isNaN(since.getTime()) && isDay(text.slice(0, "2030-01-31".length))) return since;
  throw new UsageError(`--since must be a time such as 24h or 2030-01-31T12:00:00Z, not ${JSON.stringify(text)}`);
}

// Date turns February 31 into March 2; a date that does not survive the round trip is invalid.
function isDay(text: string): boolean {
  return new Date(text).toISOString().startsWith(text);
}

function plantOf(flags: GivenFlags): bigint | undefined {
  const text = textOf(flags["plant"]);
  if (text === undefined) return undefined;
  const id = parseId(text);
  if (id === undefined) throw new UsageError(`--plant must be the id of a plant, not ${JSON.stringify(text)}`);
  return id;
}
