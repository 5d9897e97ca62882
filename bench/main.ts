import { bookScenarios } from "../protoport/bench/book-scenarios.ts";
import { clientScenarios } from "../protoport/bench/client-scenarios.ts";
import { deployedScenarios } from "./deployed-scenarios.ts";
import { canPin } from "../protoport/bench/cores.ts";
import { measureColdStarts } from "./cold-start.ts";
import { type Figures, ownName, readFigures, recordFigures } from "./figures.ts";
import { type CallFigures, ownName as protoportName } from "../protoport/bench/figures.ts";
import { hasTool } from "../protoport/bench/load/tool.ts";
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
import { proxyScenarios } from "../protoport/bench/proxy-scenarios.ts";
import { validationScenarios } from "../protoport/bench/validation-scenarios.ts";
import { http1Load, type Scenario, type Subject } from "../protoport/bench/scenarios.ts";
import { formatTable, toCallFigures } from "../protoport/bench/table.ts";
import { compareByTurns, type Contender } from "../protoport/bench/turns.ts";
import { differencesOf } from "../protoport/bench/verify.ts";
import { writePages } from "./write-figures.ts";

/** Scenarios whose calls are so cheap that the cost of metrics and traces shows. */
const watchedNames = ["rest", "connect", "grpc"];

const all = [
  ...plantScenarios,
  ...deployedScenarios,
  ...messageScenarios,
  ...libraryScenarios,
  ...bookScenarios,
  ...clientScenarios,
  ...proxyScenarios(goPeer),
  ...validationScenarios,
];

const usage = `npm run bench -- [--only NAMES] [--rounds 3] [--turns 4] [--against REV]
  NAMES: ${all.map(({ name }) => name).join(",")}
npm run bench -- --verify   which ratios differ from those in the docs; the exit code is 1 if any does
npm run bench -- --watched  the cost of metrics, of traces at 1 % and of both; default scenarios: ${watchedNames.join(", ")}
npm run bench -- --rates    latency at increasing rates
npm run bench -- --start    time, CPU time and memory until the first response
npm run bench -- --memory   resident memory after one and two million calls
npm run bench -- --stalls   how long a list of 10 MB delays other requests
With --record, each also writes its results to the docs`;

const values = parseOptions(process.argv.slice(2));

const length = { rounds: Number(values.rounds), turns: Number(values.turns) };

if (values.help) console.log(usage);
else await run();

async function run(): Promise<void> {
  if (values.start) return report({ starts: await measureColdStarts() });
  if (!canPin) console.log("taskset is not installed: server and load share cores, and the figures are less accurate.");
  // Memory and rates are not measured with large messages.
  const ofCalls = values.memory || values.rates;
  const measured = ofCalls ? plantScenarios : all;
  const only = values.only?.split(",") ?? defaultNames(ofCalls);
  for (const scenario of measured.filter(({ name }) => only?.includes(name) ?? true)) {
    console.log(`\n${scenario.title}\n`);
    await measure(scenario);
  }
}

/** Returns the scenarios with figures in the docs, or `undefined` for all scenarios. */
function defaultNames(ofCalls: boolean): readonly string[] | undefined {
  if (values.watched) return watchedNames;
  if (values.stalls) return ["rest-list-100-books"];
  if (!ofCalls) return undefined;
  return values.memory ? ["grpc"] : ["rest"];
}

async function measure(scenario: Scenario): Promise<void> {
  const { name, subjects } = scenario;
  if (values.stalls) return report({ stalls: { [name]: await measureStalls(scenario) } });
  if (values.memory) return report({ memory: { [name]: await measureMemory(scenario, ownName) } });
  for (const { build } of subjects) await build?.();
  if (values.rates) return await measureRatesOf(scenario);
  await compare(values.watched ? watched(scenario) : scenario);
}

async function measureRatesOf(scenario: Scenario): Promise<void> {
  if (!hasTool("h2load")) return console.log("h2load is not installed.");
  const peers = ["node:http", "node:http2", "fastify", "grpc-js", "net/http (Go)", "grpc-go"];
  report({ rates: { [scenario.name]: await measureRates(scenario, [ownName, ...peers]) } });
}

async function compare(scenario: Scenario): Promise<void> {
  using revision = values.against === undefined ? undefined : checkOut(values.against);
  const compared = revision === undefined ? scenario : against(scenario, revision);
  for (const reason of compared.absent ?? []) console.log(`${reason}\n`);
  const turns = await compareByTurns(contendersOf(compared), length);
  console.log(formatTable(turns));
  if (values.verify) reportDifferences(scenario.name, toCallFigures(turns));
  // The docs contain only results of this checkout without changes.
  if (values.record && !values.watched && revision === undefined)
    record({ calls: { [scenario.name]: toCallFigures(turns) } });
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
