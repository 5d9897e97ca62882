import { expect, test } from "vitest";
import { silentLog } from "@protoport/telemetry/logs";
import { openLogLines } from "../../../../protoport/testing/src/operations/log-lines.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../protoport/testing/src/comparison.ts";
import { createPlantServer, type PlantServerOptions } from "../../../../src/server/index.ts";
import { createPlantTools } from "../../../../src/server/plant-tools.ts";
import type { Configuration } from "../../../../src/server/settings.ts";
import { openMemoryStore } from "../../../../src/stores/index.ts";
import { testVerifier, tokens } from "../../../support/server/plant-server.ts";

// Starts plant servers with two values for each option that is not a setting, and compares what clients and logs get.
// setting-effects.test.ts compares the settings, with which the command creates the same server.

type Parts = Omit<PlantServerOptions, Exclude<keyof Configuration, "drainDelayMs" | "drainTimeoutMs">>;

/** The paths that are requested with a valid token. */
const requests: readonly (readonly [method: string, path: string])[] = [
  ["DELETE", "/plants/1"],
  ["DELETE", "/plants/2"],
  ["GET", "/extra"],
  ["POST", "/mcp"],
];

/** Starts a server, and returns each request's status. */
async function statusesOf(options: Partial<PlantServerOptions>, headers: object = {}): Promise<readonly number[]> {
  const server = createPlantServer({ store: openMemoryStore(new Set([1n])), verifier: testVerifier, ...options });
  const { port } = await server.listen({});
  const statuses: number[] = [];
  for (const [method, path] of requests) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${tokens.good}`, connection: "close", ...headers },
    });
    await response.text();
    statuses.push(response.status);
  }
  await server.close();
  return statuses;
}

function compareStatuses(on: () => Partial<PlantServerOptions>, headers?: object): Promise<Differs> {
  return compareValues<() => Partial<PlantServerOptions>>(
    () => ({}),
    on,
    (options) => statusesOf(options(), headers),
  );
}

/** Compares the lines that a log gets with and without the option. */
function compareLines(name: "auditLog" | "deletionLog" | "log"): Promise<Differs> {
  return compareValues(false, true, async (isSet) => {
    const { log, lines } = openLogLines("info");
    await statusesOf({ log: silentLog, ...(isSet && { [name]: log }) });
    return lines().map(({ msg, plantId }) => [msg, plantId]);
  });
}

/** Compares how often a hook is called. */
function compareCalls(optionsOf: (called: () => void) => Partial<PlantServerOptions>): Promise<Differs> {
  return compareValues(false, true, async (isSet) => {
    let calls = 0;
    await statusesOf(isSet ? optionsOf(() => void (calls += 1)) : {});
    return calls;
  });
}

/** Returns how a call to a draining server ends, and whether the drain takes longer than the call. */
async function drained(options: Partial<PlantServerOptions>): Promise<unknown> {
  const started = Promise.withResolvers<void>();
  let end = "";
  const store = {
    ...openMemoryStore(),
    delete: async (_id: bigint, { context }: Parameters<ReturnType<typeof openMemoryStore>["delete"]>[1]) => {
      started.resolve();
      end = await new Promise((resolve) => {
        context.signal.addEventListener("abort", () => resolve("aborted"), { once: true });
        setTimeout(resolve, 1_000, "completed");
      });
      return true;
    },
  };
  const server = createPlantServer({ store, verifier: testVerifier, ...options });
  const { port } = await server.listen({});
  const headers = { authorization: `Bearer ${tokens.good}` };
  const response = fetch(`http://127.0.0.1:${port}/plants/1`, { method: "DELETE", headers }).catch(() => undefined);
  await started.promise;
  const begunMs = performance.now();
  await server.drain();
  await (await response)?.text();
  return [end, performance.now() - begunMs > 1_500];
}

const effects: EffectsOf<Parts> = {
  store: () => compareStatuses(() => ({ store: openMemoryStore(new Set([1n, 2n])) })),
  verifier: () => compareStatuses(() => ({ verifier: undefined })),
  limits: () => compareStatuses(() => ({ limits: { headerBytes: 1_024 } }), { "x-long": "x".repeat(2_000) }),
  log: () => compareLines("log"),
  auditLog: () => compareLines("auditLog"),
  deletionLog: () => compareLines("deletionLog"),
  interceptors: () =>
    compareCalls((called) => ({
      interceptors: [
        (next) => (request) => {
          called();
          return next(request);
        },
      ],
    })),
  logFields: () =>
    compareValues<Partial<PlantServerOptions>>({}, { logFields: () => ({ tenant: "ada" }) }, async (options) => {
      const { log, lines } = openLogLines("info");
      await statusesOf({ log, ...options });
      return lines().map(({ tenant }) => tenant);
    }),
  tools: () => compareStatuses(() => ({ tools: createPlantTools() })),
  endpoints: () =>
    compareStatuses(() => ({
      endpoints: [{ path: "/extra", open: true, handle: () => ({ httpStatus: 200, header: {}, body: "" }) }],
    })),
  onRequest: () => compareCalls((onRequest) => ({ onRequest })),
  onResponse: () => compareCalls((onResponse) => ({ onResponse })),
  drainDelayMs: () => compareValues({}, { drainDelayMs: 2_000 }, drained),
  drainTimeoutMs: () => compareValues({}, { drainTimeoutMs: 10 }, drained),
};

test.each(Object.entries(effects))("the option %s of createPlantServer has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
