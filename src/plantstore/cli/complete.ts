import type { Command, Flag } from "./command.ts";
import { commands, findCommand } from "./commands.ts";
import { flagsOf } from "./setting-flags.ts";

/** A word that may stand where the cursor is. */
export interface Candidate {
  readonly word: string;
  readonly about: string;
}

/**
 * Returns what the last word may become, which may be empty or half typed; nothing where a file or free text is
 * expected.
 */
export function complete(words: readonly string[]): readonly Candidate[] {
  const typed = words.at(-1) ?? "";
  return candidatesAfter(words.slice(0, -1), typed).filter(({ word }) => word.startsWith(typed));
}

function candidatesAfter(before: readonly string[], typed: string): readonly Candidate[] {
  if (before[0] === "help") return nextWords(before.slice(1));
  const found = findCommand(before);
  if (found === undefined) return before.length > 0 ? nextWords(before) : [...nextWords([]), help];
  return candidatesOf(found.command, found.rest, typed);
}

const help: Candidate = { word: "help", about: "show the flags of a command" };

/** Returns the words that may come next in the name of a command. */
function nextWords(before: readonly string[]): Candidate[] {
  const start = before.map((word) => `${word} `).join("");
  const going = commands.filter(({ name }) => name.startsWith(start));
  const next = going.map(({ name, summary }): [string, string] => {
    const [word = "", ...others] = name.slice(start.length).split(" ");
    return [word, others.length > 0 ? "" : summary];
  });
  return [...new Map(next)].map(([word, about]) => ({ word, about }));
}

function candidatesOf(command: Command, rest: readonly string[], typed: string): Candidate[] {
  const flags = flagsOf(command);
  const last = rest.at(-1) ?? "";
  const expecting = last.startsWith("--") ? flags[last.slice(2)] : undefined;
  if (expecting?.value !== undefined) return toCandidates(expecting.words);
  const operands = command.operands ?? [];
  if (typed.startsWith("-") || operands.length === 0) return flagCandidates(flags, rest);
  return operands.flatMap(({ words }) => toCandidates(words));
}

function flagCandidates(flags: Readonly<Record<string, Flag>>, rest: readonly string[]): Candidate[] {
  const left = Object.entries(flags).filter(([name, { multiple }]) => multiple === true || !rest.includes(`--${name}`));
  return left.map(([name, { about }]) => ({ word: `--${name}`, about }));
}

function toCandidates(words: readonly string[] = []): Candidate[] {
  return words.map((word) => ({ word, about: "" }));
}
