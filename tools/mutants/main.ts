import { createHash } from "node:crypto";
import { globSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { everyTest, testsNear } from "./near-tests.ts";
import { faultsIn, type PlantedFault } from "./planted-fault.ts";
import { ProjectCopy } from "./project-copy.ts";
import { refusedFaults } from "./refused-faults.ts";
import type { TestQuestion } from "./test-server.ts";

// `npm run mutants`: plants small faults in `src`, one at a time, in a copy of the project, and reports those that
// no test notices. A fault that the compiler refuses does not count, because nobody could leave it in the code. The
// others are given to those tests that enter the part of the source where the fault is: first those of its folder, of the
// folders above and of the contract, then all others. A first run of all tests, without any fault, finds out which ones
// enter it. A line with a comment "No test can tell: " and the reason, at its end or above it, gets no fault.
//
//   --room gateway/json    the faults of a room, of two rooms when it is given twice
//   --file packages/auth/src/challenge.ts    only with the tests near it
//   --sample 200           only so many faults, as many of each room and of each kind, drawn by --seed; without it, all
//   --seed 7               any text; a fault keeps its place in the draw while the lines around it change
//   --minutes 25           plants no further fault after that time
//   --floor 90             fails when less than this percentage is noticed
//   --report FILE          writes how many were noticed, for `npm run results`
//   --room-floor 80        fails when less than this percentage of a room's is noticed
//   --at-once 2            works in so many copies at the same time

const { values: options } = parseArgs({
  options: {
    room: { type: "string", multiple: true, default: [] },
    file: { type: "string", multiple: true, default: [] },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "Infinity" },
    floor: { type: "string", default: "0" },
    "room-floor": { type: "string", default: "0" },
    report: { type: "string" },
    "at-once": { type: "string", default: String(availableParallelism()) },
  },
});

/**
 * Returns the faults in the order of a hash, so that a change of one file leaves the draw of the others alone: one of
 * each room in turn, and of each kind in a room.
 */
function draw(faults: readonly PlantedFault[]): PlantedFault[] {
  const timesSeen = new Map<string, number>();
  const rank = ({ file, text, change }: PlantedFault): string => {
    const key = [options.seed, file, text, change].join("\0");
    const times = timesSeen.get(key) ?? 0;
    timesSeen.set(key, times + 1);
    return createHash("sha256").update(`${key}\0${times}`).digest("hex");
  };
  const ranked = faults
    .map((fault) => ({ fault, rank: rank(fault) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ fault }) => fault);
  const rooms = [...Map.groupBy(ranked, ({ room }) => room).values()];
  return inTurn(rooms.map((ofRoom) => inTurn([...Map.groupBy(ofRoom, ({ kind }) => kind).values()])));
}

/** Returns the first of each list, then the second of each, and so on. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

/** How long the tests of other folders may take for a fault, in seconds: most tests enter some parts. */
const otherTestsSecondsMax = 60;

/** Returns the tests that enter the part of the source where a fault is, fast ones first: those near it, then others. */
function testsAsked({ file, block }: PlantedFault): { tests: TestQuestion["tests"]; seconds: number }[] {
  const near = new Set(testsNear(file));
  const enters = (id: string): boolean => entered.get(id)?.has(`${file}#${block}`) === true;
  const runs = passedFiles
    .map((run) => ({ ...run, passed: enters(run.id) ? run.passed : run.passed.filter(({ id }) => enters(id)) }))
    .filter(({ passed }) => passed.length > 0)
    .map((run) => ({ ...run, seconds: run.passed.reduce((sum, { seconds }) => sum + seconds, run.seconds) }))
    .toSorted((a, b) => a.seconds - b.seconds);
  let left = otherTestsSecondsMax;
  const others = runs.filter((run) => !near.has(run.file) && (left -= run.seconds) >= 0);
  return [runs.filter((run) => near.has(run.file)), others]
    .filter((group) => group.length > 0)
    .map((group) => ({
      tests: Object.fromEntries(group.map((run) => [run.file, run.passed.map(({ id }) => id)])),
      seconds: group.reduce((sum, { seconds }) => sum + seconds, 0),
    }));
}

/** Returns what noticed a fault; `undefined` when nothing did. */
async function noticerOf(fault: PlantedFault, copy: ProjectCopy): Promise<string | undefined> {
  using _ = copy.replace(fault.file, fault.faulty);
  for (const { tests, seconds } of testsAsked(fault)) {
    // Later than that is only a loop without end.
    const { failure } = await copy.runTests(tests, 4 * seconds + 30);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

const everyFile = globSync(["src/**/*.ts", "packages/*/src/**/*.ts"]).filter(
  (file) => !/\/gen\/|docs-page\/src\/files\/|\/citus\/|^packages\/(?:testing|conformance)\//.test(file),
);
const everyFault = everyFile.toSorted().flatMap(faultsIn);
const wanted = everyFault.filter(
  (fault) =>
    (options.room.length === 0 || options.room.includes(fault.room)) &&
    (options.file.length === 0 || options.file.includes(fault.file)),
);
const drawn = draw(wanted).slice(0, Number(options.sample));
console.log(
  `${drawn.length} of ${wanted.length} faults, drawn by --seed ${options.seed}; none in what is generated or has its own suite: pages, Citus`,
);
if (drawn.length === 0) process.exit();

const copies = Array.from({ length: Number(options["at-once"]) }, () => new ProjectCopy(process.cwd()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
process.once("exit", () => copies.forEach((copy) => copy[Symbol.dispose]()));

const began = performance.now();
const refused = await refusedFaults(copies[0]?.folder ?? ".", drawn);
const compiled = drawn.filter((fault) => !refused.has(fault));
const asked = options.file.length > 0 ? [...new Set(compiled.flatMap(({ file }) => testsNear(file)))] : everyTest;
const sources = [...new Set(compiled.map(({ file }) => file))];
const share = (at: number): string[] => asked.filter((_, nth) => nth % copies.length === at);
const sound = await Promise.all(copies.map(async (copy, at) => await copy.runAllTests(share(at), sources)));
for (const { failure } of sound) if (failure !== undefined) console.log(`fails without any fault, too: ${failure}`);
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
    const noticer = await noticerOf(fault, copy);
    results.push({ fault, noticer });
    const missed = testsAsked(fault).length === 0 ? "NOT ENTERED" : "NOT NOTICED";
    const verdict = noticer === undefined ? missed : "noticed";
    console.log(`${verdict}  ${fault.file}:${fault.line}  ${fault.change}  ${noticer ?? fault.text}`);
  }
};
await Promise.all(copies.map(work));

const rooms = [...Map.groupBy(results, ({ fault }) => fault.room)];
const least = Math.min(...rooms.map(([room, ofRoom]) => report(room, ofRoom)));
const score = report("all rooms", results);
console.log(`${drawn.length - compiled.length} more are refused by the compiler`);
if (queue.length > 0) console.log(`${queue.length} faults were not planted: ${options.minutes} minutes are over`);
if (options.report !== undefined) {
  const noticed = results.filter(({ noticer }) => noticer !== undefined).length;
  writeFileSync(options.report, JSON.stringify({ numPassedTests: noticed, numFailedTests: results.length - noticed }));
}
process.exit(score >= Number(options.floor) && least >= Number(options["room-floor"]) ? 0 : 1);

function report(name: string, ofRoom: typeof results): number {
  const noticed = ofRoom.filter(({ noticer }) => noticer !== undefined).length;
  const percentage = ofRoom.length === 0 ? 100 : (100 * noticed) / ofRoom.length;
  console.log(`${name}: ${noticed} of ${ofRoom.length} noticed, ${percentage.toFixed(1)} %`);
  return percentage;
}
