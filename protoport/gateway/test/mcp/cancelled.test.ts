import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMcp } from "../../src/mcp/index.ts";
import { RunningCalls } from "../../src/mcp/running-calls.ts";
// oxfmt-ignore
import { eventsOf, exchange, type Field, fieldValue, type HttpRequest, type HttpResponse, type HttpVersion,
  initializedRequest, initializedRevision, postMcp, startGreenhouse, statelessRequest, type TestGreenhouse, toolNameOf,
  waterBedProcedure, within } from "@protoport/testing";

// `notifications/cancelled` over HTTP, in the revisions with `initialize`. A client can cancel only its own calls.

const water = toolNameOf(waterBedProcedure);
const watch = "greenhouse_v1_GreenhouseService_WatchReadings";
let greenhouse: TestGreenhouse;
/** Ends the handlers that run, by note or sensor. */
let running: Map<string, (() => void)[]>;

async function run(name: string): Promise<void> {
  await new Promise<void>((resolve) => running.set(name, [...(running.get(name) ?? []), resolve]));
}

function endHandlers(name: string): void {
  for (const end of running.get(name) ?? []) end();
}

beforeEach(async () => {
  running = new Map();
  greenhouse = await startGreenhouse(
    {
      waterBed: async ({ note }) => (await run(note), { note }),
      async *watchReadings({ sensor }) {
        yield { sensor };
        await run(sensor);
      },
    },
    { mcp: createMcp({ tools: ["greenhouse.v1.*"] }) },
  );
});
afterEach(() => greenhouse[Symbol.asyncDispose]());
const adaSession: Field = ["mcp-session-id", "8b6f0e9c-52b7-4c1e-9f0a-3f6d1a2b4c5d"];
const eveSession: Field = ["mcp-session-id", "1d4a7b2e-9c3f-4e5a-8b6d-7f0e1a2b3c4d"];
const ada: readonly Field[] = [adaSession, ["authorization", "Bearer ada"]];

interface CallOptions {
  readonly header?: readonly Field[];
  readonly tool?: string;
  readonly version?: HttpVersion;
  readonly request?: (method: string, params: { readonly name: string }, header: readonly Field[]) => HttpRequest;
  readonly id?: unknown;
}

/** Starts a call, and waits for its handler. */
async function start(
  note: string,
  { header = ada, tool = water, version = "1.1", request = initializedRequest, id = 1 }: CallOptions = {},
): Promise<{ readonly body: () => Promise<string>; readonly responding: Promise<HttpResponse> }> {
  const params = { name: tool, arguments: tool === water ? { note } : { sensor: note } };
  const sent = request("tools/call", params, header);
  const body = JSON.stringify({ ...JSON.parse(String(sent.body)), id });
  const responding = exchange(greenhouse.address, version, { ...sent, body: Buffer.from(body) });
  await expect.poll(() => running.get(note)?.length).toBeGreaterThan(0);
  return { body: async () => String((await within(responding, "the response")).body), responding };
}

const cancellation = (requestId: unknown): string =>
  JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: "bored" } });

async function cancel(header: readonly Field[] = ada, body: string = cancellation(1)): Promise<void> {
  const request = postMcp(body, [["mcp-protocol-version", initializedRevision], ...header]);
  const response = await exchange(greenhouse.address, "1.1", request);
  expect([response.httpStatus, String(response.body)]).toEqual([202, ""]);
}

describe("a client's notifications/cancelled", () => {
  test.each([
    { name: "a unary call", tool: water, version: "1.1" as const },
    { name: "a unary call over HTTP/2", tool: water, version: "2" as const },
    { name: "a stream", tool: watch, version: "1.1" as const },
  ])("ends $name without a JSON-RPC response, and aborts its signal", async ({ tool, version }) => {
    const { responding } = await start("long", { tool, version });
    await cancel();
    const { httpStatus, header, body } = await within(responding, "the response");
    expect([httpStatus, fieldValue(header, "content-type")]).toEqual([200, "text/event-stream"]);
    expect(eventsOf(String(body))).toEqual([]);
    await greenhouse.completed(2);
    const ended = greenhouse.completedRequests.find(({ procedure }) => procedure !== undefined);
    expect(ended?.error?.code).toBe(Code.Canceled);
  });

  test("ends all calls of the client with its id", async () => {
    const calls = [await start("one"), await start("other")];
    await cancel();
    for (const call of calls) expect(await call.body()).toBe("");
  });

  test("finds an id that is escaped in another way", async () => {
    const call = await start("long", { id: "ä" });
    await cancel(ada, cancellation("ä").replace("ä", String.raw`\u00e4`));
    expect(await call.body()).toBe("");
  });

  test("is ignored when the call has ended", async () => {
    const call = await start("short");
    endHandlers("short");
    expect(await call.body()).toContain("structuredContent");
    await cancel();
  });

  test.each<{ name: string; header?: readonly Field[]; body?: string; call?: CallOptions }>([
    { name: "of another session", header: [eveSession, ada[1] ?? ["", ""]] },
    { name: "with another credential", header: [adaSession, ["authorization", "Bearer eve"]] },
    { name: "without a credential", header: [adaSession] },
    { name: "without a session", header: [ada[1] ?? ["", ""]] },
    { name: "without a session, of a call without one", header: [], call: { header: [] } },
    ...["", "session-of-ada", "8b6f0e9c-52b7-1c1e-9f0a-3f6d1a2b4c5d"].map((id) => {
      const header: readonly Field[] = [["mcp-session-id", id]];
      return { name: `with the same session id ${JSON.stringify(id)}, which is not random`, header, call: { header } };
    }),
    { name: "with another id", body: cancellation(2) },
    { name: "with a string as id, of a call with a number", body: cancellation("1") },
    { name: "with a number as id, of a call with a string", call: { id: "1" } },
    { name: "without an id", body: cancellation(undefined) },
    { name: "of a call in the stateless revision", call: { request: statelessRequest } },
  ])("$name is ignored", async ({ header, body, call: options }) => {
    const call = await start("long", options);
    await cancel(header, body);
    endHandlers("long");
    expect(await call.body()).toContain("structuredContent");
  });

  test("is refused as a request, which cancels no call", async () => {
    const call = await start("long");
    const sent = initializedRequest("notifications/cancelled", { requestId: 1 }, ada);
    const { httpStatus, body } = await exchange(greenhouse.address, "1.1", sent);
    expect([httpStatus, JSON.parse(String(body))]).toMatchObject([200, { error: { code: -32601 } }]);
    endHandlers("long");
    expect(await call.body()).toContain("structuredContent");
  });

  test("leaves the call of another client with the same id running", async () => {
    const [ofAda, ofEve] = [await start("ada"), await start("eve", { header: [eveSession] })];
    await cancel();
    expect(await ofAda.body()).toBe("");
    endHandlers("eve");
    expect(await ofEve.body()).toContain('"note":"eve"');
  });
});

test("each initialize gets another session id, and no other reply has one", async () => {
  const sessionOf = async (method: string): Promise<string | undefined> =>
    fieldValue((await exchange(greenhouse.address, "1.1", initializedRequest(method))).header, "mcp-session-id");
  const ids = [await sessionOf("initialize"), await sessionOf("initialize")];
  expect([ids.every((id) => /^[0-9a-f-]{36}$/.test(id ?? "")), new Set(ids).size]).toEqual([true, 2]);
  expect(await sessionOf("ping")).toBeUndefined();
});

test("RunningCalls forgets a call that has ended", () => {
  const calls = new RunningCalls();
  const header = { get: (name: string) => (name === "mcp-session-id" ? adaSession[1] : null) };
  const cancelled: string[] = [];
  const remove = calls.add(header, "1", () => cancelled.push("first"));
  calls.add(header, "1", () => cancelled.push("second"));
  remove();
  calls.cancel(header, "1");
  expect(cancelled).toEqual(["second"]);
});
