import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { exchangeFetch } from "../../../testing/src/http/fetch.ts";
import { compareValues, Differs, type EffectsOf } from "../../../testing/src/comparison.ts";
// oxfmt-ignore
import { createHealthService, drainGracefully, type DrainTimes, Health, type HealthOptions, Readiness
} from "../../src/health/index.ts";
import { createGateway } from "../../src/index.ts";

// Checks health and drains with two values for each option, and compares the results.

const ready = new Readiness({});
const stopping = new Readiness({});
stopping.startDraining();
const usual: HealthOptions = { readiness: ready, services: ["shop.v1.Shop"] };

/** Compares a service's health. */
function compareHealth(on: Partial<HealthOptions>): Promise<Differs> {
  return compareValues<Partial<HealthOptions>>({}, on, async (options) => {
    const { fetch } = createGateway({
      routes: (router) => router.service(Health, createHealthService({ ...usual, ...options })),
    });
    const { httpStatus, body } = await exchangeFetch(fetch, {
      httpMethod: "POST",
      path: `/${Health.typeName}/Check`,
      header: [["content-type", "application/json"]],
      body: Buffer.from('{"service":"shop.v1.Shop"}'),
    });
    return [httpStatus, String(body)];
  });
}

const healthEffects: EffectsOf<HealthOptions> = {
  readiness: () => compareHealth({ readiness: stopping }),
  services: () => compareHealth({ services: [] }),
};

/** Compares the timeouts that a server's `drain` gets within 10 ms. */
function compareTimes(on: Partial<DrainTimes>): Promise<Differs> {
  return compareValues<Partial<DrainTimes>>({}, on, async (times) => {
    const timeouts: number[] = [];
    const server = { drain: async (timeoutMs: number): Promise<void> => void timeouts.push(timeoutMs) };
    const drained = drainGracefully(server, new Readiness({}), { delayMs: 0, timeoutMs: 1_000, ...times });
    await sleep(10);
    const asked = [...timeouts];
    await drained;
    return asked;
  });
}

const drainEffects: EffectsOf<DrainTimes> = {
  delayMs: () => compareTimes({ delayMs: 500 }),
  timeoutMs: () => compareTimes({ timeoutMs: 2_000 }),
};

test.each([
  ...Object.entries(healthEffects).map(([name, comparison]) => ({ owner: "createHealthService", name, comparison })),
  ...Object.entries(drainEffects).map(([name, comparison]) => ({ owner: "drainGracefully", name, comparison })),
])("the option $name of $owner has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
