import { harmlessInAuth } from "./auth.ts";
import { harmlessElsewhere } from "./elsewhere.ts";
import { harmlessInGateway } from "./gateway.ts";
import type { HarmlessFaults } from "./harmless-fault.ts";
import { harmlessOnCitus } from "./on-citus.ts";
import { harmlessInPlants } from "./plants.ts";
import { harmlessInPostgres } from "./postgres.ts";
import { harmlessInSqlite } from "./sqlite.ts";

export type { HarmlessFaults } from "./harmless-fault.ts";

/** Every fault that no test should notice, by room. */
export const harmlessFaults: readonly HarmlessFaults[] = [
  ...harmlessInAuth,
  ...harmlessInGateway,
  ...harmlessInPlants,
  ...harmlessInPostgres,
  ...harmlessInSqlite,
  ...harmlessOnCitus,
  ...harmlessElsewhere,
];
