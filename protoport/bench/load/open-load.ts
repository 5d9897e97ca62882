import { fileURLToPath } from "node:url";
import { type LoadResult, type LoadShape, requestOf } from "./load.ts";
import { runTool } from "./tool.ts";

const program = fileURLToPath(new URL("open-client.ts", import.meta.url));

/** The options for `open-client.ts`, which are passed as an argument in JSON. */
export interface OpenClientOptions {
  /** The bytes of the only request, as Latin-1. */
  readonly request: string;
  readonly connections: number;
  readonly requestsPerS: number;
  readonly port: number;
  readonly durationS: number;
}

/** An open-loop load's result. */
export interface OpenLoadResult extends LoadResult {
  /** Share of the time in which the client did not run, because other processes used its core. */
  readonly stalledShare: number;
}

/**
 * Returns an open-loop load over HTTP/1.1, whose requests arrive as a Poisson process. Latency is measured from the
 * time when a request is due, even if no connection is idle then, so that a slow response delays no later request
 * unnoticed.
 */
export function openLoad(
  shape: LoadShape,
  requestsPerS: number,
): (port: number, durationS: number) => Promise<OpenLoadResult> {
  const request = requestOf(shape, shape);
  const { connections } = shape;
  return async (port, durationS) => {
    const options: OpenClientOptions = { request, connections, requestsPerS, port, durationS };
    const output = await runTool([process.execPath, program, JSON.stringify(options)], durationS);
    const result: OpenLoadResult = JSON.parse(output);
    return result;
  };
}
