import type { ParseArgsOptionsConfig } from "node:util";
import { plantLocationOf, settings } from "../server/index.ts";
import { type Flags, type Terminal, textOf } from "./command.ts";

type PlantLocation = ReturnType<typeof plantLocationOf>;

const { variable, flag = "database-url" } = settings.database;

/** The flag by which an operator's commands are told which plants. */
export const databaseFlag: ParseArgsOptionsConfig = { [flag]: { type: "string" } };

/** The line of `--help` about it. */
export const databaseHelp: string = `  --${flag} U  which plants: sqlite:<file> or postgres://…; ${variable} when left out`;

/**
 * Returns which plants a command is about.
 *
 * @throws ConfigurationError when neither flag nor variable says so
 */
export function databaseOf(flags: Flags, { environment }: Terminal): PlantLocation {
  return plantLocationOf(textOf(flags[flag]) ?? environment[variable]);
}
