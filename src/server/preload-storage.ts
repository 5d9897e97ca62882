import { StorageThread } from "../stores/sqlite/storage-thread.ts";

/**
 * Starts the storage thread if the command line and environment select an SQLite store. The thread starts while other
 * modules are loaded. The thread opens no file before the configuration is read.
 *
 * @param words - the command line. No thread is started if a flag may select another store
 */
export function preloadStorage(
  [command, ...flags]: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): void {
  if (command !== "serve" || flags.some((flag) => /^--(database-url|help|print-config)/.test(flag))) return;
  if (flags.includes("--demo") || environment["DATABASE_URL"]?.startsWith("sqlite:") === true) StorageThread.prestart();
}
