import { createServer, type IncomingMessage } from "node:http";
import { createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { startOnLoopback } from "@protoport/testing/http";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import type { GatewayOptions } from "../../../../../gateway/src/index.ts";
import { createMount, type Mount, type MountOptions } from "../../../../src/mount.ts";

// Mounts a gateway in a node:http server with two values for each option, and compares what a client gets.

type Options = MountOptions<IncomingMessage>;
type OwnNames = "closeTimeoutMs" | "contextValues" | "shutdownSignal";
/** A header field in the application's request. */
const tenantKey = createContextKey<string | undefined>(undefined);
const reading = "/sensors/7/reading";

/** Serves a greenhouse, and returns what an observer returns. */
async function observe<Observed>(
  options: Partial<Options>,
  getReading: (context: HandlerContext) => object | Promise<object>,
  observer: (baseUrl: string, mount: Mount<IncomingMessage>) => Promise<Observed>,
): Promise<Observed> {
  const mount = createMount<IncomingMessage>({
    routes: (router) =>
      router.service(GreenhouseService, { getReading: async (_request, context) => await getReading(context) }),
    ...options,
  });
  const server = createServer((request, response) =>
    mount.serve(request, request, response, () => response.writeHead(404).end("the application's page")),
  );
  await using started = await startOnLoopback(server);
  return await observer(started.baseUrl, mount);
}

/** Returns why a call ended that is in flight when the application closes, or "still running" if it has not ended. */
function afterClose(options: Partial<Options>, stop: (mount: Mount<IncomingMessage>) => void): Promise<string> {
  const running = Promise.withResolvers<AbortSignal>();
  const end = new AbortController();
  const getReading = async ({ signal }: HandlerContext): Promise<object> => {
    running.resolve(signal);
    const any = AbortSignal.any([signal, end.signal]);
    await new Promise((resolve) => any.addEventListener("abort", resolve, { once: true }));
    return {};
  };
  return observe(options, getReading, async (baseUrl, mount) => {
    const response = fetch(baseUrl + reading);
    const signal = await running.promise;
    stop(mount);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const state = signal.aborted ? String(signal.reason) : "still running";
    end.abort();
    await (await response).text();
    return state;
  });
}

const effects: EffectsOf<Pick<Options, OwnNames> & Omit<Options, keyof GatewayOptions>> = {
  contextValues: () => {
    const contextValues = ({ headers }: IncomingMessage): ReturnType<typeof createContextValues> =>
      createContextValues().set(tenantKey, String(headers["x-tenant"]));
    return compareValues<Partial<Options>>({}, { contextValues }, async (options) => {
      const seen: unknown[] = [];
      const getReading = ({ values }: HandlerContext): object => {
        seen.push(values.get(tenantKey));
        return {};
      };
      return await observe(options, getReading, async (baseUrl) => {
        await (await fetch(baseUrl + reading, { headers: { "x-tenant": "ada" } })).text();
        return seen;
      });
    });
  },
  closeTimeoutMs: () =>
    compareValues<Partial<Options>>({}, { closeTimeoutMs: 10 }, (options) =>
      afterClose(options, (mount) => mount.close()),
    ),
  shutdownSignal: () =>
    compareValues(false, true, (isGiven) => {
      const application = new AbortController();
      const options = isGiven ? { shutdownSignal: application.signal } : {};
      return afterClose(options, () => application.abort(new Error("the application stops")));
    }),
};

test.each(Object.entries(effects))("the option %s of plugins has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});

test("close aborts no call before its timeout", async () =>
  expect(await afterClose({}, (mount) => mount.close())).toBe("still running"));

test("requestPathPrefix precedes all of a plugin's paths", async () => {
  const statuses = await observe({ requestPathPrefix: "/api" }, Object, async (baseUrl) => {
    const responses = await Promise.all([fetch(`${baseUrl}/api${reading}`), fetch(baseUrl + reading)]);
    await Promise.all(responses.map((response) => response.text()));
    return responses.map(({ status }) => status);
  });
  expect(statuses).toEqual([200, 404]);
});
