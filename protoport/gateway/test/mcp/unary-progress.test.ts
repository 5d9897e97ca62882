import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { GatewayOptions } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { eventsOf, exchange, fieldValue, type HttpRequest, type HttpResponse, initializedRequest, openHttp1,
  startGreenhouse, statelessRequest, toolNameOf, waterBedProcedure, within } from "@protoport/testing";

// Progress notifications while a unary call runs. The tests fire the timer.

const everyMs = 5_000;
const name = toolNameOf(waterBedProcedure);
const spyOnTimers = () => ({
  started: vi.spyOn(globalThis, "setInterval"),
  cleared: vi.spyOn(globalThis, "clearInterval"),
});
let spies: ReturnType<typeof spyOnTimers>;
beforeEach(() => {
  spies = spyOnTimers();
});
afterEach(() => {
  spies.started.mockRestore();
  spies.cleared.mockRestore();
});

function timers(): readonly { readonly timer: unknown; readonly fire: () => void; readonly isCleared: boolean }[] {
  const { started, cleared } = spies;
  return started.mock.calls.flatMap(([fire, ms], at) => {
    const timer: unknown = started.mock.results[at]?.value;
    return ms === everyMs ? [{ timer, fire, isCleared: cleared.mock.calls.some(([one]) => one === timer) }] : [];
  });
}

function progress(seconds: number): object {
  const params = { progressToken: "p", progress: seconds, message: `running for ${seconds} seconds` };
  return { jsonrpc: "2.0", method: "notifications/progress", params };
}

/** Makes a call that ends after its timer has fired some times. */
async function callDuring(
  firings: number,
  request: HttpRequest,
  outcome: () => object,
  options: Partial<GatewayOptions> = {},
): Promise<HttpResponse> {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using greenhouse = await startGreenhouse(
    {
      waterBed: async (_request, { responseHeader }) => {
        responseHeader.set("x-moisture", "7");
        begun.resolve();
        await ended.promise;
        return outcome();
      },
    },
    { mcp: createMcp({ tools: ["greenhouse.v1.*"] }), ...options },
  );
  const responding = exchange(greenhouse.address, request === http2 ? "2" : "1.1", request);
  await within(begun.promise, "the handler");
  // Takes the last timer, because an HTTP/2 connection has started one with the same interval.
  const notifying = timers().at(-1);
  for (let at = 0; at < firings; at += 1) notifying?.fire();
  ended.resolve();
  const response = await within(responding, "the response");
  expect(timers().at(-1)?.isCleared ?? true).toBe(true);
  return response;
}

const params = { name, arguments: {}, _meta: { progressToken: "p" } };
const stateless = statelessRequest("tools/call", params);
const http2 = statelessRequest("tools/call", params);

function fail(code: Code, header: Readonly<Record<string, string>> = {}): never {
  throw new ConnectError("dry", code, header);
}

describe("a unary call with a progress token", () => {
  test.each([
    { name: "in the stateless protocol version", request: stateless },
    { name: "over HTTP/2", request: http2 },
    { name: "after initialize", request: initializedRequest("tools/call", params) },
  ])("gets a notification every 5 seconds $name, then its result", async ({ request }) => {
    const { httpStatus, header, body } = await callDuring(2, request, () => ({ bed: "7" }));
    expect([httpStatus, fieldValue(header, "content-type")]).toEqual([200, "text/event-stream"]);
    const want = [progress(5), progress(10), { jsonrpc: "2.0", id: 1, result: { structuredContent: { bed: "7" } } }];
    expect(eventsOf(String(body))).toMatchObject(want);
  });

  test("gets the handler's header fields with its first notification", async () => {
    const { header } = await callDuring(1, stateless, () => ({}));
    expect([fieldValue(header, "content-type"), fieldValue(header, "x-moisture")]).toEqual(["text/event-stream", "7"]);
  });

  const bearer = { "www-authenticate": "Bearer" };
  test.each([
    ["an error", () => fail(Code.Aborted), "ABORTED: dry"],
    ["an UNAUTHENTICATED error", () => fail(Code.Unauthenticated, bearer), "UNAUTHENTICATED: dry"],
  ])("gets %s as an event after the first notification", async (_name, outcome, text) => {
    const { httpStatus, body } = await callDuring(1, stateless, outcome);
    expect(httpStatus).toBe(200);
    const want = [progress(5), { id: 1, result: { isError: true, content: [{ text }] } }];
    expect(eventsOf(String(body))).toMatchObject(want);
  });

  test.each([
    ["a result", () => ({}), 200],
    ["an error", () => fail(Code.Aborted), 200],
    ["an UNAUTHENTICATED error", () => fail(Code.Unauthenticated, { "www-authenticate": "Bearer" }), 401],
  ])("gets %s as plain JSON if the handler responds within 5 seconds", async (_name, outcome, httpStatus) => {
    const response = await callDuring(0, stateless, outcome);
    expect(response.httpStatus).toBe(httpStatus);
    expect([fieldValue(response.header, "content-type"), timers().length]).toEqual(["application/json", 1]);
  });

  test("gets its response without a header field that is not valid", async () => {
    const options: Partial<GatewayOptions> = { admit: (one) => one.addResponseHeader("not valid", "1") };
    for (const firings of [0, 2]) {
      const { httpStatus, header } = await callDuring(firings, stateless, () => ({}), options);
      expect([httpStatus, fieldValue(header, "not valid")]).toEqual([200, undefined]);
    }
  });

  test("stops its notifications when its client disconnects", async () => {
    const begun = Promise.withResolvers<void>();
    await using greenhouse = await startGreenhouse(
      { waterBed: async () => (begun.resolve(), await new Promise<never>(() => {})) },
      { mcp: createMcp({ tools: ["greenhouse.v1.*"] }) },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(stateless);
    await within(begun.promise, "the handler");
    for (const { fire } of timers()) fire();
    connection.socket.resetAndDestroy();
    await greenhouse.completed(1);
    expect(timers().map(({ isCleared }) => isCleared)).toEqual([true]);
  });
});

test("a unary call without a progress token starts no timer", async () => {
  const { header } = await callDuring(1, statelessRequest("tools/call", { name, arguments: {} }), () => ({}));
  expect([fieldValue(header, "content-type"), timers()]).toEqual(["application/json", []]);
});
