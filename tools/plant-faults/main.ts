import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { crashSuitesFor, testsNear } from "./near-tests.ts";
import { faultsIn, type PlantedFault } from "./planted-fault.ts";
import { ProjectCopy } from "./project-copy.ts";
import type { TestQuestion } from "./test-server.ts";

// `npm run test:faults`: plants small faults in `src`, one at a time, in a copy of the project, and reports those that
// no test notices. A fault that the compiler refuses does not count, because nobody could leave it in the code. The
// others are given to the linter of promises, and to those tests that enter the part of the source where the fault is:
// first those of its folder, of the folders above and of the contract, then those that are run for other faults. A first
// run of the tests, without any fault, finds out which ones enter it. A line that ends in a comment "No test can tell: "
// with the reason, or stands below it, gets no fault.
//
//   --room gateway/json    the faults of a room, of two rooms when it is given twice
//   --file src/auth/challenge.ts
//   --again night.log      those that an earlier run, which has written this file, has not seen noticed
//   --sample 200           only so many faults, as many of each room and of each kind, drawn by --seed; without it, all
//   --seed 7               any text; a fault keeps its place in the draw while the lines around it change
//   --minutes 25           plants no further fault after that time
//   --floor 90             fails when less than this percentage is noticed
//   --room-floor 80        fails when less than this percentage of a room's is noticed
//   --at-once 2            works in so many copies at the same time
//   --crash                also runs crash suites for a fault of stores or commands that nothing else has noticed

const { values: options } = parseArgs({
  options: {
    room: { type: "string", multiple: true, default: [] },
    file: { type: "string", multiple: true, default: [] },
    again: { type: "string" },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "Infinity" },
    floor: { type: "string", default: "0" },
    "room-floor": { type: "string", default: "0" },
    "at-once": { type: "string", default: String(availableParallelism()) },
    crash: { type: "boolean", default: false },
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

/** How many faults of a file a test file has noticed so far, by `file test`. */
const noticedBy = new Map<string, number>();

/** Tests to run for a fault, and how long they all take. */
interface AskedTests {
  readonly tests: TestQuestion["tests"];
  readonly seconds: number;
}

/** Returns the tests of some files that enter the part of the source where a fault is, the most promising first. */
function testsEntering({ file, block }: PlantedFault, isWanted: (test: string) => boolean, secondsMax: number) {
  const promise = (run: { file: string; seconds: number }): number =>
    ((noticedBy.get(`${file} ${run.file}`) ?? 0) + 1) / run.seconds;
  const enters = (id: string): boolean => entered.get(id)?.has(`${file}#${block}`) === true;
  const runs = passedFiles
    .filter((each) => isWanted(each.file))
    .map(({ id, passed, ...rest }) => ({
      ...rest,
      tests: enters(id) ? passed : passed.filter((test) => enters(test.id)),
    }))
    .filter(({ tests }) => tests.length > 0)
    .map((run) => ({ ...run, seconds: run.tests.reduce((sum, { seconds }) => sum + seconds, run.seconds) }))
    .toSorted((a, b) => promise(b) - promise(a));
  const asked: AskedTests = { tests: {}, seconds: 0 };
  return runs.reduce(
    ({ tests, seconds }, run) =>
      seconds + run.seconds > secondsMax
        ? { tests, seconds }
        : { tests: { ...tests, [run.file]: run.tests.map(({ id }) => id) }, seconds: seconds + run.seconds },
    asked,
  );
}

/** How long the tests of other folders may take for a fault, in seconds: most tests enter some parts. */
const otherTestsSecondsMax = 60;

/** Returns the tests to run for a fault, one group after the other: those near it, then others that enter it. */
function testsAsked(fault: PlantedFault): readonly AskedTests[] {
  const near = new Set(testsNear(fault.file));
  const groups = [
    testsEntering(fault, (test) => near.has(test), Number.POSITIVE_INFINITY),
    testsEntering(fault, (test) => !near.has(test), otherTestsSecondsMax),
  ];
  return groups.filter(({ seconds }) => seconds > 0);
}

/** Returns what noticed a fault; `undefined` when nothing did. */
async function noticerOf(fault: PlantedFault, copy: ProjectCopy): Promise<string | undefined> {
  using _ = copy.replace(fault.file, fault.faulty);
  for (const { tests, seconds } of testsAsked(fault)) {
    // Later than that is only a loop without end.
    const { failure } = await copy.runTests(tests, 4 * seconds + 30);
    if (failure !== undefined) return failure;
  }
  const crash = options.crash ? crashSuitesFor(fault.file) : [];
  if (crash.length === 0) return undefined;
  return (await copy.runTests(Object.fromEntries(crash.map((file) => [file, []])), 900)).failure;
}

/** A fault as the lines of a report name it, which outlives a change of the lines above it. */
function nameOf({ file, change, text }: PlantedFault): string {
  return `${file}  ${change}  ${text}`;
}

function missedIn(log: string): ReadonlySet<string> {
  const lines = log.matchAll(/^NOT \w+ {2}(\S+):\d+( {2}.*)$/gm);
  return new Set(Array.from(lines, ([, file, rest]) => `${file}${rest}`));
}

const everyFile = globSync("src/**/*.ts").filter((file) => !/^src\/gen\/|docs-page\/files\//.test(file));
const everyFault = everyFile.toSorted().flatMap(faultsIn);
const missedBefore = options.again === undefined ? undefined : missedIn(readFileSync(options.again, "utf8"));
const wanted = everyFault.filter(
  (fault) =>
    (missedBefore === undefined || missedBefore.has(nameOf(fault))) &&
    (options.room.length === 0 || options.room.includes(fault.room)) &&
    (options.file.length === 0 || options.file.includes(fault.file)),
);
const drawn = draw(wanted).slice(0, Number(options.sample));
console.log(`${drawn.length} of ${wanted.length} faults, drawn by --seed ${options.seed}`);
if (drawn.length === 0) process.exit();

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
process.exit(score >= Number(options.floor) && least >= Number(options["room-floor"]) ? 0 : 1);

function report(name: string, ofRoom: typeof results): number {
  const noticed = ofRoom.filter(({ noticer }) => noticer !== undefined).length;
  const percentage = ofRoom.length === 0 ? 100 : (100 * noticed) / ofRoom.length;
  console.log(`${name}: ${noticed} of ${ofRoom.length} noticed, ${percentage.toFixed(1)} %`);
  return percentage;
}
