import { join } from "node:path";
import { type Case, readCases } from "../../../conformance/runner/index.ts";

/** The published cases, and further cases that this project's gateway must pass. */
export const allCases: readonly Case[] = [...readCases(), ...readCases(join(import.meta.dirname, "cases"))];

/**
 * The hand-written cases and the cases for repeated values in queries, which run on each HTTP server. All other cases
 * differ only in one value's text, which does not depend on the server.
 */
export const byHand: readonly Case[] = allCases.filter(
  ({ group, id }) => !group.startsWith("values-") || /^query\.\w+\.repeated$/.test(id),
);
