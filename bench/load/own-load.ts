import { fileURLToPath } from "node:url";
import type { Load, LoadResult, LoadShape } from "./load.ts";
import { runTool } from "./tool.ts";

const program = fileURLToPath(new URL("own-client.ts", import.meta.url));

/** What the client of our own is told, as one argument of JSON. */
export interface OwnClientOrder {
  readonly shape: Omit<LoadShape, "body"> & { readonly bodyBase64: string | undefined };
  readonly port: number;
  readonly durationS: number;
}

/**
 * A load of a client of our own, for machines without wrk and h2load.
 *
 * It costs the load's core more per request than they do, so a fast server has to wait for it; CPU
 * per request still compares, throughput does not.
 */
export function ownLoad(shape: LoadShape): Load {
  return async (port, durationS) => {
    const { body, ...rest } = shape;
    const order: OwnClientOrder = { shape: { ...rest, bodyBase64: body?.toString("base64") }, port, durationS };
    const result: LoadResult = JSON.parse(await runTool([process.execPath, program, JSON.stringify(order)], durationS));
    return result;
  };
}
