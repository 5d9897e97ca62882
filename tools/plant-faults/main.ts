import { createHash } from "node:crypto";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { harmlessFaults, type HarmlessFaults } from "./harmless/index.ts";
import { crashSuitesFor, testsNear } from "./near-tests.ts";
import { faultsIn, type PlantedFault } from "./planted-fault.ts";
import { ProjectCopy } from "./project-copy.ts";
import type { TestQuestion } from "./test-server.ts";

// `npm run test:faults`: plants small faults in `src`, one at a time, in a copy of the project, and reports those that
// no test notices. A fault that the compiler refuses does not count, because nobody could leave it in the code. The
// others are given to the linter of promises, and to those tests of their folder, of the folders above and of the
// contract that enter the part of the source where the fault is. A first run of the tests, without any fault, finds out
// which ones do.
//
//   --room gateway/json    the faults of a room, of two rooms when it is given twice
//   --file src/auth/challenge.ts
//   --sample 200           only so many faults, drawn by --seed; without it, all
//   --seed 7               any text; a fault keeps its place in the draw while the lines around it change
//   --minutes 25           plants no further fault after that time
//   --floor 90             fails when less than this percentage is noticed
//   --at-once 2            works in so many copies at the same time
//   --crash                also runs crash suites for a fault of stores or commands that nothing else has noticed

const { values: options } = parseArgs({
  options: {
    room: { type: "string", multiple: true, default: [] },
    file: { type: "string", multiple: true, default: [] },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "Infinity" },
    floor: { type: "string", default: "0" },
    "at-once": { type: "string", default: String(availableParallelism()) },
    crash: { type: "boolean", default: false },
  },
});

function covers({ file, line, fault }: HarmlessFaults, planted: PlantedFault): boolean {
  return (
    (file ?? planted.file) === planted.file && planted.text.startsWith(line) && planted.change.startsWith(fault ?? "")
  );
}

/** Returns the faults in the order of a hash, so that a change of one file leaves the draw of the others alone. */
function draw(faults: readonly PlantedFault[]): PlantedFault[] {
  const timesSeen = new Map<string, number>();
  const rank = ({ file, text, change }: PlantedFault): string => {
    const key = [options.seed, file, text, change].join("\0");
    const times = timesSeen.get(key) ?? 0;
    timesSeen.set(key, times + 1);
    return createHash("sha256").update(`${key}\0${times}`).digest("hex");
  };
  return faults
    .map((fault) => ({ fault, rank: rank(fault) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ fault }) => fault)
    .slice(0, Number(options.sample));
}

/** How many faults of a file a test file has noticed so far, by `file test`. */
const noticedBy = new Map<string, number>();

/** Returns the tests to run for a fault, the most promising for their time first, and the seconds that all take. */
function testsEntering({ file, block }: PlantedFault): { tests: TestQuestion["tests"]; seconds: number } {
  const near = new Set(testsNear(file));
  const promise = (run: { file: string; seconds: number }): number =>
    ((noticedBy.get(`${file} ${run.file}`) ?? 0) + 1) / run.seconds;
  const enters = (id: string): boolean => entered.get(id)?.has(`${file}#${block}`) === true;
  const runs = passedFiles
    .filter((each) => near.has(each.file))
    .map(({ id, passed, ...rest }) => ({
      ...rest,
      tests: enters(id) ? passed : passed.filter((test) => enters(test.id)),
    }))
    .filter(({ tests }) => tests.length > 0)
    .map((run) => ({ ...run, seconds: run.tests.reduce((sum, { seconds }) => sum + seconds, run.seconds) }))
    .toSorted((a, b) => promise(b) - promise(a));
  return {
    tests: Object.fromEntries(runs.map(({ file: test, tests }) => [test, tests.map(({ id }) => id)])),
    seconds: runs.reduce((sum, { seconds }) => sum + seconds, 0),
  };
}

/** Returns what noticed a fault; `undefined` when nothing did. */
async function noticerOf(fault: PlantedFault, copy: ProjectCopy): Promise<string | undefined> {
  const { tests, seconds } = testsEntering(fault);
  const crash = options.crash ? crashSuitesFor(fault.file) : [];
  using _ = copy.replace(fault.file, fault.faulty);
  // Only an endless loop takes longer than this.
  const near = seconds === 0 ? undefined : (await copy.runTests(tests, 4 * seconds + 30)).failure;
  if (near !== undefined || crash.length === 0) return near;
  return (await copy.runTests(Object.fromEntries(crash.map((file) => [file, []])), 900)).failure;
}

const everyFile = globSync("src/**/*.ts").filter((file) => !/^src\/gen\/|docs-page\/files\//.test(file));
const everyFault = everyFile.toSorted().flatMap(faultsIn);
const idle = harmlessFaults.filter((harmless) => !everyFault.some((fault) => covers(harmless, fault)));
for (const { file, line, fault } of idle)
  console.log(`nothing is covered as harmless by: ${file ?? ""} ${line} ${fault ?? ""}`);

const wanted = everyFault.filter(
  (fault) =>
    (options.room.length === 0 || options.room.includes(fault.room)) &&
    (options.file.length === 0 || options.file.includes(fault.file)) &&
    !harmlessFaults.some((harmless) => covers(harmless, fault)),
);
const drawn = draw(wanted);
console.log(`${drawn.length} of ${wanted.length} faults, drawn by --seed ${options.seed}`);
// With --sample 0, only the list of harmless faults is checked.
if (drawn.length === 0) process.exit(idle.length === 0 ? 0 : 1);

const copies = Array.from({ length: Number(options["at-once"]) }, () => new ProjectCopy(process.cwd()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
process.once("exit", () => copies.forEach((copy) => copy[Symbol.dispose]()));

const began = performance.now();
const refusals = (await copies[0]?.refusalsOf(drawn)) ?? new Map<PlantedFault, string>();
const compiled = drawn.filter((fault) => refusals.get(fault) !== "tsc");
const asked = [...new Set(compiled.flatMap(({ file }) => testsNear(file)))];
const sources = [...new Set(compiled.map(({ file }) => file))];
const sound = await Promise.all(
  copies.map(
    async (copy, at) =>
      await copy.runAllTests(
        asked.filter((_, nth) => nth % copies.length === at),
        sources,
      ),
  ),
);
const failures = sound.flatMap(({ failure, failedFiles }) => (failure === undefined ? [] : [failure, ...failedFiles]));
if (failures.length > 0) {
  console.log(`without any fault there fails:\n  ${failures.join("\n  ")}`);
  process.exit(1);
}
const passedFiles = sound.flatMap(({ files }) => files);
const entered = new Map(sound.flatMap((answer) => [...answer.entered]));
console.log(
  `${Math.round((performance.now() - began) / 1000)} s to compile them, and to run ${asked.length} test files without any`,
);

const results: { readonly fault: PlantedFault; readonly noticer: string | undefined }[] = [];
const queue = [...compiled];
const work = async (copy: ProjectCopy): Promise<void> => {
  for (;;) {
    const fault = (performance.now() - began) / 60_000 < Number(options.minutes) ? queue.shift() : undefined;
    if (fault === undefined) return;
    const noticer = refusals.get(fault) ?? (await noticerOf(fault, copy));
    results.push({ fault, noticer });
    const key = `${fault.file} ${noticer?.split(":")[0] ?? ""}`;
    noticedBy.set(key, (noticedBy.get(key) ?? 0) + 1);
    const missed = testsEntering(fault).seconds === 0 ? "NOT ENTERED" : "NOT NOTICED";
    const verdict = noticer === undefined ? missed : "noticed";
    console.log(`${verdict}  ${fault.file}:${fault.line}  ${fault.change}  ${noticer ?? fault.text}`);
  }
};
await Promise.all(copies.map(work));

const scores = Object.groupBy(results, ({ fault }) => fault.room);
for (const [room, ofRoom = []] of Object.entries(scores)) report(room, ofRoom);
const score = report("all rooms", results);
console.log(`${drawn.length - compiled.length} more are refused by the compiler`);
if (queue.length > 0) console.log(`${queue.length} faults were not planted: ${options.minutes} minutes are over`);
process.exit(score >= Number(options.floor) && idle.length === 0 ? 0 : 1);

function report(name: string, ofRoom: typeof results): number {
  const noticed = ofRoom.filter(({ noticer }) => noticer !== undefined).length;
  const percentage = ofRoom.length === 0 ? 100 : (100 * noticed) / ofRoom.length;
  console.log(`${name}: ${noticed} of ${ofRoom.length} noticed, ${percentage.toFixed(1)} %`);
  return percentage;
}
