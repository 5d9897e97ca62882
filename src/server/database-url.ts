import type { PlantLocation } from "../plants/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { bad, type Reading, value } from "./setting.ts";

/** Where plants are kept: a `DATABASE_URL`, understood. */
export type Database = { readonly kind: "memory" } | PlantLocation;

const forms = "be sqlite:<file>, postgres://user:password@host:port/database or memory:";

/**
 * Reads a `DATABASE_URL`: `sqlite:plants.db` (a path as the file system takes it, relative to the
 * working directory or absolute), `postgres://…` as libpq reads it, or `memory:`.
 */
export function readDatabaseUrl(text: string): Reading<Database> {
  if (text === "memory:") return value({ kind: "memory" });
  if (/^postgres(?:ql)?:\/\//.test(text))
    return URL.canParse(text) ? value({ kind: "postgres", url: text }) : bad(forms);
  if (!text.startsWith("sqlite:")) return bad(forms);
  const path = text.slice("sqlite:".length);
  // SQLite would take "" and ":memory:" for a database that is gone with the process.
  if (path === "" || path.startsWith(":") || path.includes("\0")) return bad(forms);
  return value({ kind: "sqlite", path });
}

/**
 * Reads the `DATABASE_URL` of an operator's command, which works on plants that are kept.
 *
 * @throws ConfigurationError when it is missing, cannot be understood, or keeps nothing
 */
export function plantLocationOf(url: string | undefined): PlantLocation {
  const reading = url === undefined || url === "" ? bad("be set") : readDatabaseUrl(url);
  if (reading.kind === "bad") throw new ConfigurationError([`DATABASE_URL must ${reading.must}`]);
  if (reading.value.kind !== "memory") return reading.value;
  throw new ConfigurationError(["DATABASE_URL must not be memory:, which only its own server sees"]);
}
