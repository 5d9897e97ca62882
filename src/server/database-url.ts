import { bad, type Reading, value } from "./setting.ts";

/** Where plants are kept: a `DATABASE_URL`, understood. */
export type Database = { readonly kind: "memory" } | { readonly kind: "sqlite"; readonly path: string };

const forms = "be memory: or sqlite:<file>";

/**
 * Reads a `DATABASE_URL`: `sqlite:plants.db` (a path as the file system takes it, relative to the
 * working directory or absolute) or `memory:`.
 */
export function readDatabaseUrl(text: string): Reading<Database> {
  if (text === "memory:") return value({ kind: "memory" });
  if (!text.startsWith("sqlite:")) return bad(forms);
  const path = text.slice("sqlite:".length);
  // SQLite would take "" and ":memory:" for a database that is gone with the process.
  if (path === "" || path.startsWith(":") || path.includes("\0")) return bad(forms);
  return value({ kind: "sqlite", path });
}
