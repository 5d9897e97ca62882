import { openPlantDatabase } from "../server/index.ts";
import { type Command, type Flags, textOf, UsageError } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";
import { exitCode } from "./exit-code.ts";

/** Prints the record of deletions. */
export const deletions: Command = {
  name: "deletions",
  synopsis: "[--since T] [--database-url U]",
  summary: "print the record of deletions, one JSON object a line, oldest first",
  options: { ...databaseFlag, since: { type: "string" } },
  positionals: [0, 0],
  help: () => ["  --since T  leave out what is older, for example 2030-01-31T12:00:00Z", databaseHelp],
  run: async (flags, _positionals, terminal) => {
    const since = sinceOf(flags);
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const run of database.listDeletions(since)) {
      // As text: a JSON number that large is not read back exactly.
      const lines = run.map((deletion) => JSON.stringify({ ...deletion, plantId: String(deletion.plantId) }));
      await terminal.write(`${lines.join("\n")}\n`);
    }
    return exitCode.ok;
  },
};

// RFC 3339, or the date alone for its midnight in UTC; Date would also take "5" and "tomorrow 12".
const dateTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/;

function sinceOf(flags: Flags): Date | undefined {
  const text = textOf(flags["since"]);
  if (text === undefined) return undefined;
  const since = new Date(text);
  if (dateTime.test(text) && !Number.isNaN(since.getTime()) && isDay(text.slice(0, "2030-01-31".length))) return since;
  throw new UsageError(`--since must be a time such as 2030-01-31T12:00:00Z, not ${JSON.stringify(text)}`);
}

// Date turns February 31 into March 2; a day that does not come back is none.
function isDay(text: string): boolean {
  return new Date(text).toISOString().startsWith(text);
}
