import { createHash } from "node:crypto";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { type Mutant, mutantsIn } from "./mutant.ts";
import { ProjectCopy } from "./project-copy.ts";
import { rejectedMutants } from "./rejected-mutants.ts";
import { allTests, relatedTests } from "./related-tests.ts";
import { findUnnoticedSettings } from "./setting-mutants.ts";
import type { TestRequest } from "./test-server.ts";

// `npm run mutants`: mutation testing. The program mutates a copy of the project, one change at a time, runs the tests
// that enter the changed block, and lists the mutants that survive. Related tests run first. Related tests are in the
// same folder or its parent folders, or test the contract. A first run of all tests without any mutation records which
// blocks each test enters. Mutants that do not compile do not count. A line with a comment "equivalent mutant: " and
// the reason, at its end or above it, is not mutated.
//
//   --module gateway/json    only the mutants of a module; may be repeated
//   --file protoport/auth/src/bearer-token.ts only the mutants of a file, with its related tests; may be repeated
//   --sample 200             at most this many mutants, evenly from each module and kind, drawn by --seed; default: all
//   --seed 7                 any string; a mutant keeps its rank in the draw while the lines around it change
//   --minutes 25             starts no mutant after this time
//   --floor 90               fails when fewer than this percentage of the mutants are killed
//   --module-floor 80        fails when fewer than this percentage of the mutants of any module are killed
//   --workers 2              how many copies of the project to test in parallel; default: one per core
//   --settings               instead of all this: mutants in which a setting of the plant store or the proxy is not
//                            read or not passed on; fails unless a test that compares its values kills each mutant

const { values: options } = parseArgs({
  options: {
    module: { type: "string", multiple: true, default: [] },
    file: { type: "string", multiple: true, default: [] },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "Infinity" },
    floor: { type: "string", default: "0" },
    "module-floor": { type: "string", default: "0" },
    workers: { type: "string", default: String(availableParallelism()) },
    settings: { type: "boolean", default: false },
  },
});
if (options.settings) process.exit((await findUnnoticedSettings()).length === 0 ? 0 : 1);

/**
 * Returns the mutants in the order of a hash, so that a change in a file does not affect the draw for other files.
 * Modules alternate, and mutation kinds alternate within a module.
 */
function draw(mutants: readonly Mutant[]): Mutant[] {
  const repetitions = new Map<string, number>();
  const rank = ({ file, text, change }: Mutant): string => {
    const key = [options.seed, file, text, change].join("\0");
    const repetition = repetitions.get(key) ?? 0;
    repetitions.set(key, repetition + 1);
    return createHash("sha256").update(`${key}\0${repetition}`).digest("hex");
  };
  const ranked = mutants
    .map((mutant) => ({ mutant, rank: rank(mutant) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ mutant }) => mutant);
  const modules = [...Map.groupBy(ranked, ({ module }) => module).values()];
  return inTurn(modules.map((ofModule) => inTurn([...Map.groupBy(ofModule, ({ kind }) => kind).values()])));
}

/** Returns the first items of all lists, then the second items, and so on. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

/** Maximum time in seconds for which unrelated tests run for a mutant. Most tests enter some blocks. */
const maxUnrelatedTestsSeconds = 60;

/**
 * Returns the tests that enter a mutant's block, in two groups: related tests and all other tests. Each group starts
 * with the fastest test.
 */
function testsFor({ file, block }: Mutant): { tests: TestRequest["tests"]; seconds: number }[] {
  const related = new Set(relatedTests(file));
  const enters = (id: string): boolean => entered.get(id)?.has(`${file}#${block}`) === true;
  const runs = passedFiles
    .map((run) => ({ ...run, passed: enters(run.id) ? run.passed : run.passed.filter(({ id }) => enters(id)) }))
    .filter(({ passed }) => passed.length > 0)
    .map((run) => ({ ...run, seconds: run.passed.reduce((sum, { seconds }) => sum + seconds, run.seconds) }))
    .toSorted((a, b) => a.seconds - b.seconds);
  let remainingSeconds = maxUnrelatedTestsSeconds;
  const others = runs.filter((run) => !related.has(run.file) && (remainingSeconds -= run.seconds) >= 0);
  return [runs.filter((run) => related.has(run.file)), others]
    .filter((group) => group.length > 0)
    .map((group) => ({
      tests: Object.fromEntries(group.map((run) => [run.file, run.passed.map(({ id }) => id)])),
      seconds: group.reduce((sum, { seconds }) => sum + seconds, 0),
    }));
}

/** Returns the test that fails on a mutant, or `undefined` when the mutant survives. */
async function killerOf(mutant: Mutant, copy: ProjectCopy): Promise<string | undefined> {
  using _ = copy.replace(mutant.file, mutant.source);
  for (const { tests, seconds } of testsFor(mutant)) {
    // A run that takes longer is an infinite loop.
    const { failure } = await copy.runTests(tests, 4 * seconds + 30);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

const sources = globSync(["src/**/*.ts", "protoport/*/src/**/*.ts"]).filter(
  (file) => !/\/gen\/|docs-page\/src\/files\/|\/citus\/|^protoport\/(?:testing|conformance)\//.test(file),
);
const selected = sources
  .toSorted()
  .flatMap(mutantsIn)
  .filter(
    ({ module, file }) =>
      (options.module.length === 0 || options.module.includes(module)) &&
      (options.file.length === 0 || options.file.includes(file)),
  );
const drawn = draw(selected).slice(0, Number(options.sample));
console.log(
  `${drawn.length} of ${selected.length} mutants, drawn by --seed ${options.seed}; without generated code, browser pages and Citus, which has its own suite`,
);
if (drawn.length === 0) process.exit();

const copies = Array.from({ length: Number(options.workers) }, () => new ProjectCopy(process.cwd()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
process.once("exit", () => copies.forEach((copy) => copy[Symbol.dispose]()));

const startMs = performance.now();
const rejected = await rejectedMutants(copies[0]?.folder ?? ".", drawn);
const compiled = drawn.filter((mutant) => !rejected.has(mutant));
const testFiles = options.file.length > 0 ? [...new Set(compiled.flatMap(({ file }) => relatedTests(file)))] : allTests;
const mutatedFiles = [...new Set(compiled.map(({ file }) => file))];
const share = (at: number): string[] => testFiles.filter((_, nth) => nth % copies.length === at);
const baseline = await Promise.all(copies.map(async (copy, at) => await copy.runAllTests(share(at), mutatedFiles)));
for (const { failure } of baseline) if (failure !== undefined) console.log(`fails without a mutant: ${failure}`);
const passedFiles = baseline.flatMap(({ files }) => files);
const entered = new Map(baseline.flatMap((result) => [...result.entered]));
console.log(
  `compiled the mutants, and ran ${testFiles.length} test files without any, in ${Math.round((performance.now() - startMs) / 1000)} s`,
);

const results: { readonly mutant: Mutant; readonly killer: string | undefined }[] = [];
const queue = [...compiled];
const runMutants = async (copy: ProjectCopy): Promise<void> => {
  for (;;) {
    const mutant = (performance.now() - startMs) / 60_000 < Number(options.minutes) ? queue.shift() : undefined;
    if (mutant === undefined) return;
    const killer = await killerOf(mutant, copy);
    results.push({ mutant, killer });
    const survived = testsFor(mutant).length === 0 ? "NOT COVERED" : "SURVIVED";
    const status = killer === undefined ? survived : "killed";
    console.log(`${status}  ${mutant.file}:${mutant.line}  ${mutant.change}  ${killer ?? mutant.text}`);
  }
};
await Promise.all(copies.map(runMutants));

const modules = [...Map.groupBy(results, ({ mutant }) => mutant.module)];
const lowest = Math.min(...modules.map(([module, ofModule]) => report(module, ofModule)));
const score = report("all modules", results);
console.log(`${drawn.length - compiled.length} more mutants do not compile`);
if (queue.length > 0) console.log(`${queue.length} mutants were not run: --minutes ${options.minutes} is over`);
process.exit(score >= Number(options.floor) && lowest >= Number(options["module-floor"]) ? 0 : 1);

function report(name: string, ofModule: typeof results): number {
  const killed = ofModule.filter(({ killer }) => killer !== undefined).length;
  const percentage = ofModule.length === 0 ? 100 : (100 * killed) / ofModule.length;
  console.log(`${name}: ${killed} of ${ofModule.length} mutants killed, ${percentage.toFixed(1)} %`);
  return percentage;
}
