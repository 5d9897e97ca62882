import { join } from "node:path";
import { type Case, readCases } from "../../../conformance/runner/index.ts";

/** The published cases, and more in the same form that this project's gateway has to keep. */
export const allCases: readonly Case[] = [...readCases(), ...readCases(join(import.meta.dirname, "cases"))];

/**
 * The cases written by hand, and lists in queries, for each way to serve a gateway: the others differ in the text of one
 * value alone, which no carrier sees.
 */
export const byHand: readonly Case[] = allCases.filter(
  ({ group, id }) => !group.startsWith("values-") || /^query\.\w+\.repeated$/.test(id),
);
