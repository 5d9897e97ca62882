import { spawnSync } from "node:child_process";
import { type FoundThing, type Requirement, requirements } from "../packages/testing/src/requirements.ts";
import { isFileSuite, type Occasion, type Suite } from "../packages/testing/src/suite.ts";
import { suites } from "../test/suites/suites.ts";
import { projectFolder } from "./build/manifest.ts";

// Runs test suites of test/suites/suites.ts:
//
//   npm run suite                            lists them
//   npm run suite -- postgres command        runs two
//   npm run suite -- crash -- sqlite-disk    passes what follows to vitest, or to the program that a suite is
//   npm run suite -- --of run                prints the names of those that .ci/run runs; or test, or nightly
//   npm run suite -- --missing crash load    prints what of their needs is not installed, for .ci/install-tools

/** What runs suites. */
interface Run {
  /** Commands of the shell that must all succeed first: a suite must not test the build of another day. */
  readonly preparations: readonly string[];
  /** Programs with their arguments. Each runs, also when another one has failed. */
  readonly commands: readonly (readonly [program: string, ...args: string[]])[];
}

/**
 * Returns what runs suites. Those of vitest share one run, with the fewest workers that any of them allows.
 *
 * @param args - the arguments for vitest and for programs
 */
export function runOf(chosen: readonly Suite[], args: readonly string[]): Run {
  const ofFiles = chosen.filter(isFileSuite);
  const workers = ofFiles.flatMap((suite) => suite.workers ?? []);
  const projects = ofFiles.flatMap(({ name }) => ["--project", name]);
  const limit = workers.length === 0 ? [] : [`--maxWorkers=${Math.min(...workers)}`];
  const vitest = [process.execPath, "node_modules/vitest/vitest.mjs", "run", ...projects, ...limit, ...args] as const;
  const programs = chosen.flatMap((suite) =>
    suite.kind === "program" ? [[process.execPath, suite.program, ...args] as const] : [],
  );
  return {
    preparations: ofFiles.flatMap(({ prepare }) => prepare ?? []),
    commands: [...(ofFiles.length === 0 ? [] : [vitest]), ...programs],
  };
}

/** Returns the suites of these names. @throws Error when one is unknown */
function suitesNamed(names: readonly string[]): Suite[] {
  return names.map((name) => {
    const suite = suites.find((each) => each.name === name);
    if (suite === undefined) throw new Error(`unknown suite "${name}": npm run suite lists them`);
    return suite;
  });
}

/** Returns what these suites need and this machine lacks. */
function missingOf(chosen: readonly Suite[]): Requirement[] {
  const needs = new Set(chosen.flatMap((suite) => suite.needs ?? []));
  return [...needs].filter((need) => {
    const { status } = spawnSync("sh", ["-c", requirements[need].found], { cwd: projectFolder, stdio: "ignore" });
    return status !== 0;
  });
}

/** Returns the lines of a suite in the list: what it tests, who runs it, why it is separate, and what it needs. */
export function describeSuite({ name, about, whySeparate, needs = [], occasion }: Suite): string {
  const by = { test: "npm test", run: ".ci/run", nightly: ".ci/nightly" }[occasion];
  const details = [
    by,
    ...(whySeparate === undefined ? [] : [whySeparate]),
    ...(needs.length === 0 ? [] : [`needs ${needs.join(", ")}`]),
  ];
  return `${name.padEnd(16)}${about}\n${" ".repeat(16)}${details.join("; ")}`;
}

/** Returns how to install something, as a word for .ci/install-tools and its argument. */
function sourceOf(need: Requirement): string {
  const thing: FoundThing = requirements[need];
  if ("debian" in thing) return `debian ${thing.debian}`;
  if ("go" in thing) return `go ${thing.go}`;
  if ("npm" in thing) return `npm ${thing.npm}`;
  return `site ${need} ${thing.site}`;
}

function isOccasion(word: string | undefined): word is Occasion {
  return word === "test" || word === "run" || word === "nightly";
}

/** Runs a program in the project's folder, and returns whether it succeeded. */
function succeeds(program: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(program, args, { cwd: projectFolder, stdio: "inherit" });
  if (error !== undefined) process.stderr.write(`${error.message}\n`);
  return status === 0;
}

/** Runs suites, and returns whether all succeeded. */
function runAll({ preparations, commands }: Run): boolean {
  if (!preparations.every((command) => succeeds("sh", ["-c", command]))) return false;
  return commands.map(([program, ...args]) => succeeds(program, args)).every(Boolean);
}

function main(words: readonly string[]): number {
  const [first, ...rest] = words;
  if (first === undefined) {
    process.stdout.write(`${suites.map(describeSuite).join("\n")}\n`);
    return 0;
  }
  if (first === "--of") {
    const [occasion] = rest;
    if (!isOccasion(occasion))
      throw new Error(`--of must be followed by test, run or nightly, got "${occasion ?? ""}"`);
    const names = suites.filter((suite) => suite.occasion === occasion).map(({ name }) => name);
    process.stdout.write(`${names.join("\n")}\n`);
    return 0;
  }
  if (first === "--missing") {
    process.stdout.write(
      missingOf(suitesNamed(rest))
        .map((need) => `${sourceOf(need)}\n`)
        .join(""),
    );
    return 0;
  }
  const end = words.includes("--") ? words.indexOf("--") : words.length;
  const chosen = suitesNamed(words.slice(0, end));
  if (chosen.length === 0) throw new Error("name a suite: npm run suite lists them");
  for (const need of missingOf(chosen))
    process.stderr.write(
      `missing: ${need} (${sourceOf(need)}); .ci/install-tools installs it. Its tests are skipped or fail.\n`,
    );
  return runAll(runOf(chosen, words.slice(end + 1))) ? 0 : 1;
}

if (import.meta.main) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (reason) {
    process.stderr.write(`${reason instanceof Error ? reason.message : String(reason)}\n`);
    process.exitCode = 2;
  }
}
