import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout } from "node:timers/promises";
import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { startOnLoopback, within } from "@protoport/testing";
import { countRefTimers } from "../../testing/src/ref-timers.ts";
import { createMount, type MountOptions } from "../src/mount.ts";

// The long suite tests the effect of each option.

test.each<{ name: string; options: Partial<MountOptions<IncomingMessage>> }>([
  { name: "without a shutdown signal", options: {} },
  { name: "with a shutdown signal", options: { shutdownSignal: new AbortController().signal } },
])("$name, close() aborts calls in flight after its timeout", async ({ options }) => {
  const mount = createMount<IncomingMessage>({
    ...options,
    closeTimeoutMs: 1,
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: async (_request, { signal }) => {
          mount.close();
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          throw signal.reason;
        },
      }),
  });
  const server = createServer((request, response) => mount.serve(request, request, response, () => response.end()));
  await using started = await startOnLoopback(server);
  const response = await fetch(`${started.baseUrl}/${GreenhouseService.typeName}/GetReading`, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json", "connect-timeout-ms": "5000" },
  });
  expect(await response.json()).toEqual({ code: "unavailable", message: "the server is shutting down" });
});

test("close() aborts no call when closeTimeoutMs is Infinity", async () => {
  const mount = createMount<IncomingMessage>({
    closeTimeoutMs: Number.POSITIVE_INFINITY,
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: async (_request, { signal }) => {
          mount.close();
          await setTimeout(50);
          return { sensor: String(signal.aborted) };
        },
      }),
  });
  const server = createServer((request, response) => mount.serve(request, request, response, () => response.end()));
  await using started = await startOnLoopback(server);
  expect(await (await fetch(`${started.baseUrl}/sensors/7/reading`)).json()).toEqual({ sensor: "false" });
});

test.each<{ name: string; options: Partial<MountOptions<IncomingMessage>> }>([
  { name: "without contextValues", options: {} },
  { name: "with contextValues", options: { contextValues: () => createContextValues() } },
])("$name, requestOf returns each concurrent call's own request", async ({ options }) => {
  const both = Promise.withResolvers<void>();
  let calls = 0;
  const mount = createMount<IncomingMessage>({
    ...options,
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: async (_request, { values }) => {
          calls += 1;
          if (calls === 2) both.resolve();
          await within(both.promise, "the second call");
          return { sensor: String(mount.requestOf(values)?.url) };
        },
      }),
  });
  const server = createServer((request, response) => mount.serve(request, request, response, () => response.end()));
  await using started = await startOnLoopback(server);
  const paths = ["/sensors/7/reading", "/sensors/8/reading"];
  const responses = await Promise.all(paths.map((path) => fetch(started.baseUrl + path)));
  expect(await Promise.all(responses.map((response) => response.json()))).toEqual(paths.map((sensor) => ({ sensor })));
});

test("close() leaves the application's own responses open", async () => {
  const mount = createMount<IncomingMessage>({ routes: () => {}, closeTimeoutMs: 1 });
  const respond = async (response: ServerResponse): Promise<void> => {
    response.write("begun ");
    mount.close();
    // Longer than calls of the gateway may still run.
    await setTimeout(1_200);
    response.end("ended");
  };
  const server = createServer((request, response) => {
    mount.serve(request, request, response, () => void respond(response));
  });
  await using started = await startOnLoopback(server);
  expect(await (await fetch(`${started.baseUrl}/own`)).text()).toBe("begun ended");
});

test("close starts no timer that keeps the process running", () => {
  const { close } = createMount<IncomingMessage>({ routes: () => {}, closeTimeoutMs: 1 });
  const before = countRefTimers();
  close();
  expect(countRefTimers()).toBe(before);
});
