import { StorageThread } from "../stores/sqlite/storage-thread.ts";

/**
 * Begins the thread of an SQLite store where these words and this environment lead to one, so that it starts while the
 * rest of the program is loaded. It opens nothing before the configuration is read.
 *
 * @param words - the command line; one that says more about the store than that it is the demo's begins nothing
 */
export function beginStorage(
  [command, ...flags]: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): void {
  if (command !== "serve" || flags.some((flag) => /^--(database-url|help|print-config)/.test(flag))) return;
  if (flags.includes("--demo") || environment["DATABASE_URL"]?.startsWith("sqlite:") === true) StorageThread.begin();
}
