import { parseArgs } from "node:util";
import { canPin } from "./cores.ts";
import { measure, type Measurement, type RoundLength } from "./measure.ts";
import { scenarios, type Scenario } from "./scenarios.ts";
import { formatTable } from "./table.ts";

// `npm run bench -- [--only rest,grpc] [--seconds 4]`: what a request costs, as a multiple of bare node.

const { values } = parseArgs({
  options: { only: { type: "string" }, seconds: { type: "string", default: "4" } },
});
const length: RoundLength = { warmUpS: 2, measuredS: Number(values.seconds) };
const only = values.only?.split(",");

if (!canPin) console.log("No taskset here: server and load share cores, and the figures mean less.");
for (const scenario of scenarios.filter(({ name }) => only === undefined || only.includes(name))) {
  console.log(`\n${scenario.title}\n${formatTable(await run(scenario))}`);
}

async function run(scenario: Scenario): Promise<ReadonlyMap<string, Measurement>> {
  const measurements = new Map<string, Measurement>();
  for (const { name, program } of scenario.subjects) {
    measurements.set(name, await measure(program, scenario.load, length));
  }
  return measurements;
}
