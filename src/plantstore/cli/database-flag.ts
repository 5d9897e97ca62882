import { plantLocationOf, settings } from "../server/index.ts";
import { type Flag, type GivenFlags, type Terminal, textOf } from "./command.ts";

type PlantLocation = ReturnType<typeof plantLocationOf>;

const { variable } = settings.database;
const { variable: fileVariable } = settings.databaseUrlFile;
const flag = "database-url";

/** The flag that tells commands of an operator which plants to use. */
export const databaseFlag: Readonly<Record<string, Flag>> = {
  [flag]: { value: "URL", about: `the store: sqlite:<file> or postgres://…; default ${variable}` },
};

/**
 * Returns the location of the plants that a command is about.
 *
 * @throws ConfigurationError when neither flag nor variables name it
 */
export function databaseOf(flags: GivenFlags, { environment }: Terminal): PlantLocation {
  return plantLocationOf(textOf(flags[flag]) ?? environment[variable], environment[fileVariable]);
}
