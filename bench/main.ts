import { parseArgs } from "node:util";
import { canPin } from "./cores.ts";
import { measureColdStarts } from "./cold-start.ts";
import { measureMemory } from "./memory.ts";
import { checkOut } from "./revision.ts";
import { messageScenarios } from "./message-scenarios.ts";
import { against, type Scenario, scenarios, watched } from "./scenarios.ts";
import { formatTable } from "./table.ts";
import { compareByTurns, type Contender } from "./turns.ts";

/** Scenarios of calls that are so cheap that watching them shows. */
const watchedNames = ["rest", "connect", "grpc"];

const usage = `npm run bench -- [--only NAMES] [--rounds 3] [--turns 4] [--against REV]
  NAMES: ${[...scenarios, ...messageScenarios].map(({ name }) => name).join(",")}
npm run bench -- --watched  what metrics, traces at 1 %, and both cost; by default over ${watchedNames.join(", ")}
npm run bench -- --start    time to the first answer
npm run bench -- --memory   resident memory after one and two million calls`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "3" },
    turns: { type: "string", default: "4" },
    against: { type: "string" },
    start: { type: "boolean", default: false },
    memory: { type: "boolean", default: false },
    watched: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(usage);
else await run();

async function run(): Promise<void> {
  if (!canPin) console.log("There is no taskset: server and load share cores, and the figures mean less.");
  using revision = values.against === undefined ? undefined : checkOut(values.against);
  const only = values.only?.split(",") ?? (values.watched ? watchedNames : undefined);
  const length = { rounds: Number(values.rounds), turns: Number(values.turns) };
  // How soon a server starts and what it holds on to is not asked with large messages.
  const measured = values.start || values.memory ? scenarios : [...scenarios, ...messageScenarios];
  for (const scenario of measured.filter(({ name }) => only?.includes(name) ?? true)) {
    const chosen = values.watched ? watched(scenario) : scenario;
    const compared = revision === undefined ? chosen : against(chosen, revision);
    console.log(`\n${scenario.title}\n`);
    if (values.start) {
      console.log(await measureColdStarts(scenario));
      continue;
    }
    for (const reason of compared.absent ?? []) console.log(`${reason}\n`);
    for (const { build } of compared.subjects) await build?.();
    if (values.memory) console.log(await measureMemory(compared));
    else console.log(formatTable(await compareByTurns(contendersOf(compared), length)));
  }
}

function contendersOf({ subjects, load, probe }: Scenario): readonly Contender[] {
  return subjects.map((subject) => ({ subject, load, probe }));
}
