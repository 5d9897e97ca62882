import { existsSync } from "node:fs";
import { join } from "node:path";
import { h2loadLoad } from "./load/h2load.ts";
import type { Load, LoadShape } from "./load/load.ts";
import { ownLoad } from "./load/own-load.ts";
import { hasTool } from "./load/tool.ts";
import { wrkLoad } from "./load/wrk.ts";
import type { Probe } from "./probe.ts";

/** A load, and the servers that are compared under it. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly shape: LoadShape;
  readonly load: Load;
  /** Sends one request from the load, to check before the measurement that a server handles the request. */
  readonly probe: Probe;
  /** The servers. The first server is the floor, and all other results are multiples of the floor's result. */
  readonly subjects: readonly Subject[];
  /** A message for each server that cannot be built on this machine, which names what is missing. */
  readonly absent?: readonly string[];
}

/** A server in the comparison. */
export interface Subject {
  readonly name: string;
  /** The path to the server's program. */
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
  /**
   * The load for this server, if it differs from the scenario's load. The load is then the same call over another
   * protocol.
   */
  readonly shape?: LoadShape;
  /** Builds a program that does not run from its source. Rejects if the build fails. */
  readonly build?: () => Promise<void>;
}

/** Returns a load over HTTP/1.1. */
export const http1Load: (shape: LoadShape) => Load = hasTool("wrk") ? wrkLoad : ownLoad;
/** Returns a load over HTTP/2. */
export const http2Load: (shape: LoadShape) => Load = hasTool("h2load") ? h2loadLoad : ownLoad;

/** Returns servers in a bench's folder `peers`, if their dependencies are installed. */
export function installedPeers(names: readonly string[], folder: string = import.meta.dirname): Subject[] {
  const installed = existsSync(join(folder, "peers/node_modules"));
  return installed ? names.map((name) => server(name, `peers/${name}`, {}, folder)) : [];
}

/** Returns a server whose program is in a bench's folder, which is this folder by default. */
export function server(
  name: string,
  path: string,
  environment: NodeJS.ProcessEnv = {},
  folder: string = import.meta.dirname,
): Subject {
  return { name, program: join(folder, `${path}.ts`), environment };
}
