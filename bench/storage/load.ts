import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Percentiles } from "../../protoport/bench/load/load.ts";
import { runAnywhere, runTool, withFolder } from "../../protoport/bench/load/tool.ts";
import { readWrk } from "../../protoport/bench/load/wrk.ts";
import { benchToken } from "../servers/plants.ts";
import { scatterStep } from "./scattered.ts";

/** The result of deleting plants over REST. */
export interface RestResult {
  readonly connections: number;
  readonly requests: number;
  readonly requestsPerS: number;
  /** Share of requests whose plant was already deleted, because a random id was repeated. */
  readonly missed: number;
  readonly latencyUs: Percentiles;
}

/** Plants in a scattered order, without repetitions until all have been deleted. */
export interface Scattered {
  /** Number of plants, whose ids start with 1. */
  readonly plants: number;
  /** Number of plants that have been deleted before. */
  readonly begun: number;
}

/** Deletes plants over REST with wrk, for `seconds`. @param run - runs wrk, by default on the load's core */
export function deleteScatteredPlants(
  port: number,
  connections: number,
  seconds: number,
  scattered: Scattered,
  run: typeof runTool = runTool,
): Promise<RestResult> {
  const first = (BigInt(scattered.begun) * scatterStep) % BigInt(scattered.plants);
  const prepare = `local at = ${String(first)}
    local function nextId() at = (at + ${String(scatterStep)}) % ${String(scattered.plants)} return at + 1 end`;
  return deletePlants(port, connections, seconds, prepare, "nextId()", run);
}

/** Deletes the plants whose ids a Lua expression returns. */
async function deletePlants(
  port: number,
  connections: number,
  seconds: number,
  prepare: string,
  idExpression: string,
  runMany = runTool,
): Promise<RestResult> {
  const output = await withFolder(async (folder) => {
    const script = join(folder, "delete.lua");
    writeFileSync(script, luaOf(prepare, idExpression));
    const shape = [`-c${String(connections)}`, "-t1", `-d${String(seconds)}s`, "--timeout", "30s", "--latency"];
    // A lone caller sleeps while its plant is deleted. On a pinned core, the storage thread would move to that core.
    const run = connections === 1 ? runAnywhere : runMany;
    return await run(["wrk", ...shape, "-s", script, `http://127.0.0.1:${String(port)}`], seconds);
  });
  const { requests, refused, broken, durationS, latencyUs } = readWrk(output);
  if (broken > 0) throw new Error(`connections failed: ${output}`);
  return { connections, requests, requestsPerS: requests / durationS, missed: refused / requests, latencyUs };
}

function luaOf(prepare: string, idExpression: string): string {
  return `
    ${prepare}
    wrk.method = "DELETE"
    wrk.headers["authorization"] = "Bearer ${benchToken}"
    request = function() return wrk.format(nil, string.format("/plants/%d", ${idExpression})) end`;
}
