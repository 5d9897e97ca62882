import { join } from "node:path";
import { type Case, readCases } from "../../conformance/runner/index.ts";

/** The published cases, and more in the same form that this project's gateway has to keep. */
export const allCases: readonly Case[] = [...readCases(), ...readCases(join(import.meta.dirname, "cases"))];
