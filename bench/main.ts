import { bookScenarios } from "../protoport/bench/book-scenarios.ts";
import { clientScenarios } from "../protoport/bench/client-scenarios.ts";
import { deployedScenarios } from "./deployed-scenarios.ts";
import { canPin } from "../protoport/bench/cores.ts";
import { measureColdStarts } from "./cold-start.ts";
import { type Figures, ownName, readFigures, recordFigures } from "./figures.ts";
import { type CallFigures, ownName as protoportName } from "../protoport/bench/figures.ts";
import { measureMemory } from "../protoport/bench/memory.ts";
import { parseOptions } from "../protoport/bench/options.ts";
import { measureRates } from "../protoport/bench/rates.ts";
import { measureStalls } from "../protoport/bench/stalls.ts";
import { checkOut, type Revision } from "../protoport/bench/revision.ts";
import { libraryScenarios } from "../protoport/bench/library-scenarios.ts";
import { messageScenarios } from "../protoport/bench/message-scenarios.ts";
import { http1Probe } from "../protoport/bench/probe.ts";
import { goPeer } from "./native-peers.ts";
import { plantScenarios, watched } from "./plant-scenarios.ts";
import { measureDeletions } from "./storage/deletions.ts";
import { proxyScenarios } from "../protoport/bench/proxy-scenarios.ts";
import { validationScenarios } from "../protoport/bench/validation-scenarios.ts";
import { http1Load, type Scenario, type Subject } from "../protoport/bench/scenarios.ts";
import { formatTable, isTooBusy, toCallFigures } from "../protoport/bench/table.ts";
import { compareByTurns, type Contender } from "../protoport/bench/turns.ts";
import { differencesOf } from "../protoport/bench/verify.ts";
import { writePages } from "./write-figures.ts";

/** Scenarios whose calls are so cheap that the cost of metrics and traces shows. */
const watchedNames = ["rest", "connect", "grpc"];

/** The servers whose memory and latency at a rate are measured. */
const fewServers = ["node:http", ownName, "fastify", "net/http (Go)"];

const scenarios = [
  ...plantScenarios,
  ...deployedScenarios,
  ...messageScenarios,
  ...libraryScenarios,
  ...bookScenarios,
  ...clientScenarios,
  ...proxyScenarios(goPeer),
  ...validationScenarios,
];

/** Measurements that are not comparisons of calls in turns, by name. */
const others: Readonly<Record<string, () => Promise<Figures>>> = {
  rates: async () => ({ rates: await measureRates(await built(restWithFewServers())) }),
  memory: async () => ({ memory: await measureMemory(await built(restWithFewServers())) }),
  start: async () => ({ starts: await measureColdStarts() }),
  stalls: async () => ({ stalls: await measureStalls(scenarioOf("rest-list-100-books")) }),
  deletions: async () => ({ deletions: await measureDeletions() }),
};

const names = [...scenarios.map(({ name }) => name), ...Object.keys(others)];

const usage = `npm run bench -- [--only NAMES] [--rounds 3] [--turns 3] [--against REV]
  NAMES: ${names.join(",")}
  rates: latency at increasing rates; memory: after one and two million calls, and of idle connections;
  start: until the first response; stalls: how long a list of 10 MB delays other requests; deletions: of each store
npm run bench -- --verify   which ratios differ from those in the docs; the exit code is 1 if any does
npm run bench -- --watched  the cost of metrics, of traces at 1 % and of both; default scenarios: ${watchedNames.join(", ")}
With --record, each also writes its results to the docs`;

const values = parseOptions(process.argv.slice(2));

const length = { rounds: Number(values.rounds), turns: Number(values.turns) };

if (values.help) console.log(usage);
else await run();

async function run(): Promise<void> {
  if (!canPin) console.log("taskset is not installed: server and load share cores, and the figures are less accurate.");
  const only = values.only?.split(",") ?? (values.watched ? watchedNames : names);
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`unknown NAMES ${unknown.join(",")}; see --help`);
  for (const name of only) {
    const measureOther = others[name];
    if (measureOther === undefined) await measure(scenarioOf(name));
    else report(await measureOther());
  }
}

async function measure(scenario: Scenario): Promise<void> {
  console.log(`\n${scenario.title}\n`);
  await built(scenario);
  await compare(values.watched ? watched(scenario) : scenario);
}

async function built(scenario: Scenario): Promise<Scenario> {
  for (const { build } of scenario.subjects) await build?.();
  return scenario;
}

function restWithFewServers(): Scenario {
  const { subjects, ...rest } = scenarioOf("rest");
  return { ...rest, subjects: subjects.filter(({ name }) => fewServers.includes(name)) };
}

function scenarioOf(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`unknown scenario ${name}`);
  return found;
}

async function compare(scenario: Scenario): Promise<void> {
  using revision = values.against === undefined ? undefined : checkOut(values.against);
  const compared = revision === undefined ? scenario : against(scenario, revision);
  for (const reason of compared.absent ?? []) console.log(`${reason}\n`);
  const turns = await compareByTurns(contendersOf(compared), length);
  console.log(formatTable(turns));
  if (values.verify) reportDifferences(scenario.name, toCallFigures(turns));
  // The docs contain only results of this checkout without changes.
  if (!values.record || values.watched || revision !== undefined) return;
  if (isTooBusy(turns)) process.exitCode = 1;
  else record({ calls: { [scenario.name]: toCallFigures(turns) } });
}

function reportDifferences(name: string, measured: CallFigures): void {
  const differences = differencesOf(measured, readFigures().calls?.[name]);
  console.log(differences.length === 0 ? "\nAll ratios are as published." : `\n${differences.join("\n")}`);
  if (differences.length > 0) process.exitCode = 1;
}

function report(part: Figures): void {
  console.log(JSON.stringify(part, undefined, 2));
  if (values.record) record(part);
}

function record(part: Figures): void {
  recordFigures(part);
  writePages();
}

function contendersOf({ subjects, load, probe }: Scenario): readonly Contender[] {
  return subjects.map((subject) => {
    const { shape } = subject;
    return shape === undefined
      ? { subject, load, probe }
      : { subject, load: http1Load(shape), probe: http1Probe(shape) };
  });
}

/** Returns the scenario, to which this project's server from another checkout is added. */
function against({ subjects, ...scenario }: Scenario, { name, folder }: Revision): Scenario {
  const withRevision = (subject: Subject): Subject[] => {
    if (subject.name !== ownName && subject.name !== protoportName) return [subject];
    const environment = { ...subject.environment, BENCH_TREE: folder };
    return [subject, { ...subject, name: `${subject.name} at ${name}`, environment }];
  };
  return { ...scenario, subjects: subjects.flatMap(withRevision) };
}
