import { fileURLToPath } from "node:url";
import type { Load, LoadResult, LoadShape } from "./load.ts";
import { runTool } from "./tool.ts";

const program = fileURLToPath(new URL("own-client.ts", import.meta.url));

/** The options for `own-client.ts`, which are passed as an argument in JSON. */
export interface OwnClientOptions {
  readonly shape: Omit<LoadShape, "body"> & { readonly bodyBase64: string | undefined };
  readonly port: number;
  readonly durationS: number;
}

/**
 * Returns an `own-client.ts` load, for machines without wrk and h2load.
 *
 * The client uses more CPU per request than wrk and h2load, so that a fast server is idle at times. CPU time per
 * request is comparable with the results of wrk and h2load, but throughput is not.
 */
export function ownLoad(shape: LoadShape): Load {
  return async (port, durationS) => {
    const { body, ...rest } = shape;
    const options: OwnClientOptions = { shape: { ...rest, bodyBase64: body?.toString("base64") }, port, durationS };
    const result: LoadResult = JSON.parse(
      await runTool([process.execPath, program, JSON.stringify(options)], durationS),
    );
    return result;
  };
}
