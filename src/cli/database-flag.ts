import type { ParseArgsOptionsConfig } from "node:util";
import { plantLocationOf, settings } from "../server/index.ts";
import { type Flags, type Terminal, textOf } from "./command.ts";

type PlantLocation = ReturnType<typeof plantLocationOf>;

const { variable, flag = "database-url" } = settings.database;

/** The flag that tells commands of an operator which plants to use. */
export const databaseFlag: ParseArgsOptionsConfig = { [flag]: { type: "string" } };

/** The line about it in `--help`. */
export const databaseHelp: string = `  --${flag} U  the store: sqlite:<file> or postgres://…; default ${variable}`;

/**
 * Returns the location of the plants that a command is about.
 *
 * @throws ConfigurationError when neither flag nor variable names it
 */
export function databaseOf(flags: Flags, { environment }: Terminal): PlantLocation {
  return plantLocationOf(textOf(flags[flag]) ?? environment[variable]);
}
