import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll } from "vitest";
import { createTestGateway, Differs, GreenhouseService, ProxyCommand } from "@protoport/testing/proxy";
import { createTempFolder, within } from "@protoport/testing/process";
import { Health } from "../../../../../../gateway/src/health/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../../gateway/src/reflection/index.ts";

/** A configuration file's settings, and its first upstream's. */
export type TestSettings = Readonly<Record<string, unknown>> & { readonly upstream?: object };

export interface RunningProxy {
  /** The URL for calls, or "" if the command has not started to serve. */
  readonly baseUrl: string;
  /** The URL for probes, or "" without an admin port. */
  readonly adminUrl: string;
  readonly lines: readonly string[];
  stop(): void;
}

const folder = createTempFolder();

export const fileOf: (name: string, content: string | Uint8Array) => string = folder.write;
/** The header fields in calls that the upstream has received since the proxy started, oldest first. */
export const calls: Headers[] = [];
/** Ends calls to the sensor `waits`. */
export let release: () => void = () => undefined;

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
export function useUpstream(): void {
  const upstream = createTestGateway({ routes: upstreamRoutes });
  beforeAll(async () => void (address = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1" })).port}`));
  afterAll(() => upstream.close());
  afterAll(() => folder[Symbol.dispose]());
}

/** Fails if proxies with each of the settings look equal. Defaults: free loopback ports, reflection, no drain delay. */
export async function compare(
  off: TestSettings,
  on: TestSettings,
  observe: (proxy: RunningProxy) => unknown,
): Promise<Differs> {
  const observed: unknown[] = [];
  for (const { upstream, ...others } of [off, on]) {
    calls.length = 0;
    const defaults = { listen: { port: 0 }, admin: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 } };
    const upstreams = [{ addresses: [address], descriptors: "reflection", ...upstream }];
    const file = fileOf("proxy.yaml", JSON.stringify({ ...defaults, upstreams, ...others }));
    const command = new ProxyCommand(["--config", file]);
    await command.waitForLine(/ serves |waiting for descriptors/);
    const { lines } = command;
    const urlIn = (pattern: RegExp): string => lines.map((line) => pattern.exec(line)?.[1]).find(Boolean) ?? "";
    const baseUrl = urlIn(/^(\S+) serves/);
    const adminUrl = urlIn(/^health and metrics at (\S+)/);
    observed.push(await observe({ baseUrl, adminUrl, lines, stop: () => command.stop() }));
    command.stop();
    await within(command.done, "the end of the command");
  }
  return new Differs(observed);
}
