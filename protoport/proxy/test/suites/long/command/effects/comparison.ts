import { writeFileSync } from "node:fs";
import type { ConnectRouter } from "@connectrpc/connect";
import { createTestGateway, Differs, GreenhouseService } from "@protoport/testing/proxy";
import { Health } from "../../../../../../gateway/src/health/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../../gateway/src/reflection/index.ts";
import { createTempFolder } from "../../../../../../testing/src/process/temp-folder.ts";
import { type RunningProxy, runProxy, type TestSettings } from "./running-proxy.ts";
import { afterAll, beforeAll } from "vitest";

const folder = createTempFolder();

/** Writes a file, and returns its path. */
export function fileOf(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

/** The header fields in calls that the upstream has received since the test started, oldest first. */
export const calls: Headers[] = [];
/** Ends calls to the sensor `waits`. */
export let release: () => void = () => undefined;

/** Registers the upstream's services. */
function upstreamRoutes(router: ConnectRouter): void {
  router.service(GreenhouseService, {
    getReading: async ({ sensor }, { requestHeader, responseHeader, signal }) => {
      calls.push(requestHeader);
      if (sensor === "waits")
        await new Promise<void>((resolve) => {
          release = resolve;
          signal.addEventListener("abort", () => resolve());
        });
      responseHeader.set("x-version", "2");
      if (sensor === "large") responseHeader.set("x-large", "x".repeat(6_000));
      return { sensor, degreesCelsius: 21 };
    },
    waterBed: ({ bed }) => ({ bed }),
  });
  router.service(ServerReflection, createReflectionService([GreenhouseService]));
  router.service(Health, { check: () => ({ status: 1 }) });
}

/** The address of every proxy's upstream, unless a test case sets another address. */
export let address = "";
/** Starts the upstream before a file's tests, and stops it afterwards. */
export function useUpstream(): void {
  const upstream = createTestGateway({ routes: upstreamRoutes });
  beforeAll(async () => {
    address = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1" })).port}`;
  });
  afterAll(() => upstream.close());
  afterAll(() => folder[Symbol.dispose]());
}

/** The comparisons, by setting path. */
export type Effects = Readonly<Record<string, () => Promise<Differs>>>;

/** Starts a proxy with each settings object, and fails if the observations are equal. */
export async function compare(
  off: TestSettings,
  on: TestSettings,
  observe: (proxy: RunningProxy) => unknown,
): Promise<Differs> {
  const observed: unknown[] = [];
  for (const settings of [off, on]) {
    calls.length = 0;
    await using proxy = await runProxy([address], settings);
    observed.push(await observe(proxy));
  }
  return new Differs(observed);
}

/** Milliseconds to wait for an effect that the other value must not have. */
export const settledMs = 1_000;

/** A reading's path. */
export const reading = "/sensors/4/reading";
/** The full name of the upstream's service. */
export const greenhouse: string = GreenhouseService.typeName;

/** Calls a proxy, and reads the response. */
export async function ask(
  { baseUrl }: RunningProxy,
  path: string,
  init: RequestInit = {},
): Promise<{ readonly status: number; readonly header: Headers; readonly body: string }> {
  const response = await fetch(`${baseUrl}${path}`, init);
  return { status: response.status, header: response.headers, body: await response.text() };
}

type Observe<Result> = (proxy: RunningProxy) => Promise<Result>;

/** Returns a function that observes a call's status. */
export function statusOf(path: string, init?: RequestInit): Observe<number> {
  return async (proxy) => (await ask(proxy, path, init)).status;
}

/** Returns a function that observes a response's body. */
export function bodyOf(path: string, init?: RequestInit): Observe<string> {
  return async (proxy) => (await ask(proxy, path, init)).body;
}

/** A WaterBed call. */
export const waterBed: RequestInit = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
