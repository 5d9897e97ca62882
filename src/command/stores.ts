import { createReadStream, statSync } from "node:fs";
import {
  copiesOf,
  type ImportCounts,
  importPlants,
  migratePlants,
  openPlantDatabase,
  parseId,
} from "../stores/index.ts";
import { plantLocationOf, settings } from "../server/index.ts";
import { type Flag, type ParsedFlags, readFlag, textOf, UsageError } from "@protoport/command-line";
import { formatted } from "@protoport/command-line/settings";
import { type Command, exitCode, formatInteger, parseDurationMs, type PlantTerminal, startClock } from "./command.ts";
import { reopenStores } from "./move.ts";

const { variable } = settings.database;
const { variable: fileVariable } = settings.databaseUrlFile;

const plantId = formatted("id", "a 64-bit integer", parseId);

/** The flag that selects the store for a command. */
const databaseFlag: Readonly<Record<string, Flag>> = {
  "database-url": { value: "URL", about: `the store: sqlite:<file> or postgres://…; default ${variable}` },
};

/** Returns the location of a command's store. Throws ConfigurationError if no store is configured. */
function databaseOf(flags: ParsedFlags, { environment }: PlantTerminal): ReturnType<typeof plantLocationOf> {
  return plantLocationOf(textOf(flags["database-url"]) ?? environment[variable], environment[fileVariable]);
}

/** The `import` command, which adds plants from a text with one id per line. */
export const importCommand: Command = {
  name: "import",
  summary: "add plants from a file or standard input, one id per line",
  operands: [{ name: "FILE", about: "the file; standard input if it is - or omitted", optional: true }],
  flags: {
    restore: { about: "also add plants that have a deletion record; by default they are skipped" },
    ...databaseFlag,
  },
  notes: [
    "Existing plants stay. You can run an interrupted import again: what it added is then already present.",
    "SIGINT and SIGTERM stop it after the current batch, and it prints what it added; the exit code is 130 or 143.",
  ],
  run: async (flags, [file = "-"], terminal) => {
    if (file !== "-" && statSync(file).isDirectory()) throw new Error(`cannot read ${file}: it is a directory`);
    const interruption = new AbortController();
    const { signal } = interruption;
    void terminal.stopSignal().then((name) => interruption.abort(name));
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    const elapsed = startClock();
    let ids = 0;
    let counts: ImportCounts = { added: 0, present: 0, deleted: 0 };
    const onBatch = (batch: number, countsSoFar: ImportCounts): void => {
      counts = countsSoFar;
      ids += batch;
      terminal.progress?.(`${formatInteger(ids)} ids`);
    };
    try {
      // Throws before creating the stream, because a stream with an aborted signal would fail before it has a reader.
      signal.throwIfAborted();
      const input = file === "-" ? terminal.input(signal) : createReadStream(file, { signal });
      await importPlants(database, input, { restore: flags["restore"] === true, onBatch });
    } catch (reason) {
      terminal.progress?.("");
      if (ids > 0 || signal.aborted)
        terminal.err(
          `stopped after ${elapsed()}; imported the first ${formatInteger(ids)} ids: ${describeCounts(counts)}`,
        );
      const isInterrupted = reason === signal.reason || (reason instanceof Error && reason.name === "AbortError");
      if (!signal.aborted || !isInterrupted) throw reason;
      return signal.reason === "SIGINT" ? exitCode.interrupted : exitCode.terminated;
    }
    terminal.progress?.("");
    terminal.err(`imported ${formatInteger(ids)} ids in ${elapsed()}`);
    terminal.out(describeCounts(counts));
    return exitCode.ok;
  },
};

function describeCounts({ added, present, deleted }: ImportCounts): string {
  return `${added} added, ${present} already present, ${deleted} skipped (deleted before)`;
}

/** The `export` command, which prints all plant ids. */
export const exportCommand: Command = {
  name: "export",
  summary: "print the ids of all plants, one per line, sorted, from a single snapshot",
  flags: databaseFlag,
  run: async (flags, _operands, terminal) => {
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const ids of database.exportPlants()) await terminal.write(`${ids.join("\n")}\n`);
    return exitCode.ok;
  },
};

/** The `deletions` command, which prints the deletion records. */
export const deletionsCommand: Command = {
  name: "deletions",
  summary: "print the deletion records, one JSON object per line, oldest first",
  flags: {
    since: { value: "TIME", about: "omit older records, for example 24h or 2030-01-31T12:00:00Z" },
    plant: { value: "ID", about: "only print the records of this plant" },
    ...databaseFlag,
  },
  run: async (flags, _operands, terminal) => {
    const filter = { since: readFlag(flags, "since", time), plantId: readFlag(flags, "plant", plantId) };
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const run of database.listDeletions(filter)) {
      // The id is a string, because a large JSON number loses digits.
      const lines = run.map(({ plantId: id, deletedAtUs, subject, requestId, batch }) =>
        JSON.stringify({
          plantId: String(id),
          deletedAt: new Date(Number(deletedAtUs / 1_000n)),
          subject,
          requestId,
          batch,
        }),
      );
      await terminal.write(`${lines.join("\n")}\n`);
    }
    return exitCode.ok;
  },
};

// Matches an RFC 3339 time, or a date at midnight UTC. Date.parse would also accept "5" and "tomorrow 12".
const dateOrTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/;

const time = formatted("time", "a duration such as 24h or a time such as 2030-01-31T12:00:00Z", (text) => {
  const agoMs = parseDurationMs(text);
  if (agoMs !== undefined) return new Date(Date.now() - agoMs);
  const since = new Date(text);
  const day = text.slice(0, "2030-01-31".length);
  const isTime = dateOrTime.test(text) && !Number.isNaN(since.getTime());
  // Date converts February 31 to a day in March. A date that changes in a round trip is invalid.
  return isTime && new Date(day).toISOString().startsWith(day) ? since : undefined;
});

/** The `backup` command, which copies an SQLite store while a server may use the store. */
export const backupCommand: Command = {
  name: "backup",
  summary: "copy a snapshot of an SQLite store, also while a server uses it",
  operands: [{ name: "FILE", about: "the copy, which is also a store; must not exist yet" }],
  flags: databaseFlag,
  run: async (flags, [file = ""], terminal) => {
    const store = copiedFileOf("backup", flags, terminal);
    store.backUp(file);
    terminal.err(`copied ${store.path} to ${file}`);
    return exitCode.ok;
  },
};

/** The `restore` command, which replaces an SQLite store with a backup. */
export const restoreCommand: Command = {
  name: "restore",
  summary: "replace an SQLite store with a backup; no server may use the store",
  operands: [{ name: "FILE", about: "the backup, which is not changed" }],
  flags: databaseFlag,
  notes: ["Plants that were deleted after the backup are restored too."],
  run: async (flags, [file = ""], terminal) => {
    const store = copiedFileOf("restore", flags, terminal);
    store.restore(file);
    terminal.err(`restored ${store.path} from ${file}`);
    return exitCode.ok;
  },
};

function copiedFileOf(
  command: string,
  flags: ParsedFlags,
  terminal: PlantTerminal,
): Exclude<ReturnType<typeof copiesOf>, string> {
  const copies = copiesOf(databaseOf(flags, terminal));
  if (typeof copies === "string")
    throw new UsageError(`${command} requires a store in a file, such as sqlite:; use ${copies} instead`);
  return copies;
}

/** The `migrate` command, which creates a store's schema or migrates the schema to this release's version. */
export const migrateCommand: Command = {
  name: "migrate",
  summary: "create the schema of a store, or migrate it to this release; with --reopen, undo an interrupted move",
  operands: [
    { name: "FROM", about: "with --reopen, the source of the interrupted move", optional: true },
    { name: "TO", about: "with --reopen, its target, which the move has not filled", optional: true },
  ],
  flags: {
    reopen: { about: "make both stores of an interrupted `move` usable again, and migrate nothing" },
    ...databaseFlag,
  },
  notes: ["Servers of the previous release keep running meanwhile, and can be replaced one by one afterwards."],
  run: async (flags, operands, terminal) => {
    if (flags["reopen"] === true && flags["database-url"] !== undefined)
      throw new UsageError("--reopen cannot be combined with --database-url: its stores are FROM and TO");
    if (flags["reopen"] === true) return await reopenStores(operands, terminal);
    if (operands.length > 0) throw new UsageError("FROM and TO require --reopen");
    const elapsed = startClock();
    const { from, to } = await migratePlants(databaseOf(flags, terminal), (what) =>
      terminal.err(`waiting for ${what}`),
    );
    terminal.err(
      from === to
        ? `nothing to migrate: this release supports version ${to} of the schema`
        : `migrated the schema from version ${from} to version ${to} in ${elapsed()}`,
    );
    return exitCode.ok;
  },
};
