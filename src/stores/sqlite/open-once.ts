import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { PlantStore } from "../../service/index.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { checkSqliteStoreOptions, openSqliteStore as openStore, type SqliteStoreOptions } from "./sqlite-store.ts";

/** The real paths of the files that stores of this process have open. */
const openPaths = new Set<string>();

/**
 * Opens a store like {@link openStore}, but refuses a file that another store of this process has open.
 *
 * The log's integrity check opens the -shm file, and closing any descriptor of that file releases all locks of the
 * process (POSIX fcntl). So closing one store would let other processes write during a commit of the other store, and
 * damage the file.
 *
 * @throws StoreOpenError that names the file and the problem; TypeError for unknown options
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<PlantStore> {
  checkSqliteStoreOptions(options);
  const path = realPathOf(options.file);
  if (openPaths.has(path)) {
    throw new StoreOpenError(`cannot open ${options.file}: this process has already opened the file; share the store`);
  }
  openPaths.add(path);
  const release = (): boolean => openPaths.delete(path);
  const store = await openStore(options).catch((fault: unknown) => {
    release();
    throw fault;
  });
  const close = store.close.bind(store);
  let closed: Promise<void> | undefined;
  // A second call must not release the file of a later store.
  return Object.assign(store, { close: () => (closed ??= close().finally(release)) });
}

function realPathOf(file: string): string {
  const path = resolve(file);
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(path);
  // A missing folder is reported when the file is opened.
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path;
}
