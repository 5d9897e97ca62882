import { expect, test, vi } from "vitest";
import { preloadStorage } from "../../src/server/preload-storage.ts";
import { StorageThread } from "../../src/stores/sqlite/storage-thread.ts";

const url = "sqlite:plants.db";

test.each([
  ["starts a thread for serve with an SQLite store", ["serve"], url, true],
  ["starts a thread for serve with a flag", ["serve", "--port", "0"], url, true],
  ["starts a thread for a demo", ["serve", "--port", "0", "--demo"], undefined, true],
  ["starts no thread without a database URL", ["serve"], undefined, false],
  ["starts no thread for PostgreSQL", ["serve"], "postgres://db/plants", false],
  ["starts no thread for --database-url=memory:", ["serve", "--database-url=memory:"], url, false],
  ["starts no thread for --database-url memory:", ["serve", "--database-url", "memory:"], url, false],
  ["starts no thread for serve --print-config", ["serve", "--print-config"], url, false],
  ["starts no thread for serve --help", ["serve", "--help"], url, false],
  ["starts no thread for import", ["import", "ids"], url, false],
])("preloadStorage %s in advance", (_name, words, database, begins) => {
  using prestart = vi.spyOn(StorageThread, "prestart").mockReturnValue();
  preloadStorage(words, { DATABASE_URL: database });
  expect(prestart).toHaveBeenCalledTimes(begins ? 1 : 0);
});
