import { spawnSync } from "node:child_process";
import { type RequirementSpec, type Requirement, requirements } from "../protoport/testing/src/requirements.ts";
import { isFileSuite, type Occasion, type Suite } from "../protoport/testing/src/suite.ts";
import { suites } from "../test/suites/suites.ts";
import { projectFolder } from "../protoport/tools/build/manifest.ts";

// Runs test suites in test/suites/suites.ts:
//
//   npm run suite                            lists the suites
//   npm run suite -- long load               runs two suites
//   npm run suite -- crash -- sqlite-kill    passes the arguments after -- to vitest, or to the program of the suite
//   npm run suite -- --of run                prints the suites that .ci/run runs; also for test and nightly
//   npm run suite -- --missing crash load    prints the missing requirements of these suites, for .ci/install-tools

/** The commands that run suites. */
interface Run {
  /** Shell commands that must succeed before the suites run, so that no suite tests an old build. */
  readonly preparations: readonly string[];
  /** Programs with their arguments. Each program runs even if another program has failed. */
  readonly commands: readonly (readonly [program: string, ...args: string[]])[];
}

/** The width of the name column in the list, in characters. */
const nameWidth = Math.max(...suites.map(({ name }) => name.length)) + 2;

/**
 * Returns the commands that run suites. Suites with test files share a vitest run, with the lowest number of workers
 * that any suite has.
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

/** Returns the suites with these names. @throws Error when a name is unknown */
function suitesNamed(names: readonly string[]): Suite[] {
  return names.map((name) => {
    const suite = suites.find((each) => each.name === name);
    if (suite === undefined) throw new Error(`unknown suite "${name}"; "npm run suite" lists the suites`);
    return suite;
  });
}

/** Returns the suite requirements that are not installed on this machine. */
function missingOf(chosen: readonly Suite[]): Requirement[] {
  const needs = new Set(chosen.flatMap((suite) => suite.needs ?? []));
  return [...needs].filter((need) => {
    const { status } = spawnSync("sh", ["-c", requirements[need].found], { cwd: projectFolder, stdio: "ignore" });
    return status !== 0;
  });
}

/**
 * Returns a suite's lines in the list, which state what it tests, what runs it, why it is separate, and its
 * requirements.
 */
export function describeSuite({ name, about, whySeparate, needs = [], occasion }: Suite): string {
  const by = { test: "npm test", run: ".ci/run", nightly: ".ci/nightly" }[occasion];
  const details = [
    by,
    ...(whySeparate === undefined ? [] : [whySeparate]),
    ...(needs.length === 0 ? [] : [`needs ${needs.join(", ")}`]),
  ];
  return `${name.padEnd(nameWidth)}${about}\n${" ".repeat(nameWidth)}${details.join("; ")}`;
}

/** Returns how to install a requirement, as a word for .ci/install-tools and its argument. */
function sourceOf(need: Requirement): string {
  const thing: RequirementSpec = requirements[need];
  if ("debian" in thing) return `debian ${thing.debian}`;
  if ("debian13" in thing) return `debian-13 ${thing.debian13}`;
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
  if (chosen.length === 0) throw new Error('the name of a suite is missing; "npm run suite" lists the suites');
  for (const need of missingOf(chosen))
    process.stderr.write(
      `missing: ${need} (${sourceOf(need)}); tests that need it are skipped or fail. .ci/install-tools installs it.\n`,
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
