import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { faultsOf } from "./faults-of.ts";
import { harmlessFaults, type HarmlessFaults } from "./harmless-faults.ts";
import { ProjectCopy } from "./project-copy.ts";

// `npm run test:faults`: plants small faults in `src`, one at a time, each in a copy of the project, and tells
// which of them no test notices. What the compiler refuses is no fault that anyone could leave, and does not count. Then
// the file's own tests are asked, the tests of its folder and of the folders above, the linter of promises, and the
// contract.
//
//   --room gateway/json    the faults of a room, of two rooms when it is given twice
//   --file src/auth/challenge.ts
//   --sample 200           so many of them, drawn by --seed; without it, all
//   --seed 7               any text. A fault keeps its place in the draw while the lines around it change
//   --minutes 25           plants no further fault after that time
//   --floor 90             fails when less than this percentage is noticed
//   --at-once 2            so many copies work at the same time
//   --crash                asks crash suites, too, about a fault of stores or commands that nothing else has noticed

interface PlantedFault {
  readonly file: string;
  readonly room: string;
  readonly line: number;
  /** The line, without its indentation. */
  readonly text: string;
  readonly change: string;
  readonly faulty: string;
}

const project = join(import.meta.dirname, "../..");
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

const longSuites = /^test\/(browser|clients|conformance|crash|frameworks|openapi|package|costs|load)\//;
const everyTest = globSync("test/**/*.test.ts", { cwd: project }).filter((file) => !file.includes("node_modules"));
const testFiles = everyTest.filter((file) => !longSuites.test(file));
const crashSuites = everyTest.filter((file) => file.startsWith("test/crash/"));
const testTexts = new Map(testFiles.map((file) => [file, readFileSync(join(project, file), "utf8")]));

/** Tests that lead to a room and lie neither in it nor above it. */
const besides: ReadonlyMap<string, RegExp> = new Map([
  ["test/cli/", /^test\/examples\//],
  ["test/client/", /^test\/examples\//],
  ["test/gateway/calls/", /^test\/gateway\/beside\//],
  ["test/gateway/carriers/", /^test\/gateway\/(?:beside|calls)\//],
  ["test/gateway/http2/", /^test\/gateway\/carriers\//],
  ["test/gateway/json/", /^test\/gateway\/rest\//],
  ["test/gateway/protocols/", /^test\/gateway\/beside\//],
]);

function roomOf(file: string): string {
  return /^src\/(gateway\/\w+(?=\/)|\w+)/.exec(file)?.[1] ?? "";
}

function faultsIn(file: string): PlantedFault[] {
  const source = readFileSync(join(project, file), "utf8");
  return faultsOf(source).map(({ start, end, code }) => {
    const lineStart = source.lastIndexOf("\n", start - 1) + 1;
    return {
      file,
      room: roomOf(file),
      line: source.slice(0, start).split("\n").length,
      text: source.slice(lineStart, source.indexOf("\n", start)).trim(),
      change: `${short(source.slice(start, end))} → ${short(code)}`,
      faulty: source.slice(0, start) + code + source.slice(end),
    };
  });
}

function short(code: string): string {
  const line = code.replace(/\s+/g, " ");
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

function covers({ file, line, fault }: HarmlessFaults, planted: PlantedFault): boolean {
  return (
    (file ?? planted.file) === planted.file && planted.text.startsWith(line) && planted.change.startsWith(fault ?? "")
  );
}

/** The faults in the order of the draw: by a hash, so that a change of one file leaves the draw of the others alone. */
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

/** Which crash suites tell of a file, with `--crash`: a store that loses what it acknowledged shows it nowhere else. */
const crashSuitesOf: readonly (readonly [files: RegExp, suites: RegExp])[] = [
  [/^src\/plants\/sqlite\//, /sqlite|durability|fdatasync/],
  [/^src\/plants\/postgres\//, /postgres|pgbouncer/],
  [/^src\/plants\/[^/]+$/, /sqlite|durability|postgres/],
  [/^src\/cli\//, /workers|unread-log/],
];

function crashSuitesFor(file: string): string[] {
  const suites = options.crash ? crashSuitesOf.find(([files]) => files.test(file))?.[1] : undefined;
  return suites === undefined ? [] : crashSuites.filter((test) => suites.test(test));
}

/** The test files that are asked about a file of `src`, nearest first. */
function testsFor(file: string): { own: string[]; folder: string[]; around: string[]; crash: string[] } {
  const folder = dirname(file).replace(/^src/, "test");
  const room = `test/${roomOf(file)}/`;
  const own = testFiles.filter(
    (test) =>
      test.startsWith(room) &&
      (test === file.replace(/^src/, "test").replace(/ts$/, "test.ts") || testTexts.get(test)?.includes(`/${file}"`)),
  );
  const near = testFiles.filter(
    (test) =>
      test.startsWith(`${folder}/`) || (dirname(test) !== "test" && `${folder}/`.startsWith(`${dirname(test)}/`)),
  );
  const around = testFiles.filter((test) => test.startsWith("test/contract/") || besides.get(room)?.test(test));
  return {
    own,
    folder: near.filter((test) => !own.includes(test)),
    around: around.filter((test) => !own.includes(test) && !near.includes(test)),
    crash: crashSuitesFor(file),
  };
}

/** What notices a change that is not even compiled. */
const compiler = "tsc";

/** Says what noticed a fault, `undefined` when nothing did. */
async function noticerOf(fault: PlantedFault, copy: ProjectCopy): Promise<string | undefined> {
  using _ = copy.replace(fault.file, fault.faulty);
  const { own, folder, around, crash } = testsFor(fault.file);
  const failureOf = async (files: readonly string[]): Promise<string | undefined> => {
    const timeOf = (test: string): number => secondsOf[test] ?? 0;
    // Later than that is only a loop without end.
    const seconds = files.reduce((sum, test) => sum + 4 * timeOf(test), 30);
    const quickFirst = files.toSorted((a, b) => timeOf(a) - timeOf(b));
    return files.length === 0 ? undefined : (await copy.runTests(quickFirst, passing, seconds)).failure;
  };
  // First, because it takes half a second and refuses many.
  if (!(await copy.compiles())) return compiler;
  const failure = (await failureOf(own)) ?? (await failureOf(folder));
  if (failure !== undefined) return failure;
  if (!(await copy.keepsPromises(fault.file))) return "oxlint";
  return (await failureOf(around)) ?? (await failureOf(crash));
}

const everyFile = globSync("src/**/*.ts", { cwd: project }).filter(
  (file) => !/^src\/gen\/|docs-page\/files\//.test(file),
);
const everyFault = everyFile.toSorted().flatMap(faultsIn);
const idle = harmlessFaults.filter((harmless) => !everyFault.some((fault) => covers(harmless, fault)));
for (const { file, line, fault } of idle)
  console.log(`harmless-faults.ts covers nothing by: ${file ?? ""} ${line} ${fault ?? ""}`);

const wanted = everyFault.filter(
  (fault) =>
    (options.room.length === 0 || options.room.includes(fault.room)) &&
    (options.file.length === 0 || options.file.includes(fault.file)) &&
    !harmlessFaults.some((harmless) => covers(harmless, fault)),
);
const drawn = draw(wanted);
console.log(`${drawn.length} of ${wanted.length} faults, drawn by --seed ${options.seed}`);
// With --sample 0 only the list of what is harmless is looked through.
if (drawn.length === 0) process.exit(idle.length === 0 ? 0 : 1);

const copies = Array.from({ length: Number(options["at-once"]) }, () => new ProjectCopy(project));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
process.once("exit", () => copies.forEach((copy) => copy[Symbol.dispose]()));

const asked = [...new Set(drawn.flatMap(({ file }) => Object.values(testsFor(file)).flat()))];
const began = performance.now();
const sound = await copies[0]?.runAllTests(asked);
if (sound === undefined || sound.failure !== undefined) {
  console.log(`without any fault there fails:\n  ${[sound?.failure, ...(sound?.failedFiles ?? [])].join("\n  ")}`);
  process.exit(1);
}
const { seconds: secondsOf, passing } = sound;

const results: { readonly fault: PlantedFault; readonly noticer: string | undefined }[] = [];
let refusedByCompiler = 0;
const queue = [...drawn];
const work = async (copy: ProjectCopy): Promise<void> => {
  for (;;) {
    const fault = (performance.now() - began) / 60_000 < Number(options.minutes) ? queue.shift() : undefined;
    if (fault === undefined) return;
    const noticer = await noticerOf(fault, copy);
    if (noticer === compiler) refusedByCompiler++;
    else results.push({ fault, noticer });
    console.log(
      `${noticer === undefined ? "NOT NOTICED" : "noticed"}  ${fault.file}:${fault.line}  ${fault.change}  ${noticer ?? fault.text}`,
    );
  }
};
await Promise.all(copies.map(work));

const scores = Object.groupBy(results, ({ fault }) => fault.room);
for (const [room, ofRoom = []] of Object.entries(scores)) report(room, ofRoom);
const score = report("all rooms", results);
console.log(`${refusedByCompiler} more are refused by the compiler`);
if (queue.length > 0) console.log(`${queue.length} faults were not planted: ${options.minutes} minutes are over`);
process.exit(score >= Number(options.floor) && idle.length === 0 ? 0 : 1);

function report(name: string, ofRoom: typeof results): number {
  const noticed = ofRoom.filter(({ noticer }) => noticer !== undefined).length;
  const percentage = ofRoom.length === 0 ? 100 : (100 * noticed) / ofRoom.length;
  console.log(`${name}: ${noticed} of ${ofRoom.length} noticed, ${percentage.toFixed(1)} %`);
  return percentage;
}
