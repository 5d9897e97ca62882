import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { situations, openSituationStore } from "../../support/plants/situation-store.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../../support/server/plant-server.ts";
import type { Call, Client } from "./connect-web-page.ts";
import { type ModuleServer, startModuleServer } from "../../../protoport/test/suites/browser/module-server.ts";
import { openBrowser } from "../../../protoport/test/suites/browser/open-browser.ts";

// The Connect client in a page on another origin, with a stub that protoc-gen-es generated.

const longId = 2n ** 53n + 1n;
let browser: Browser;
let shop: ModuleServer;
let plants: Set<bigint>;
let server: TestPlantServer;
let page: Page;

beforeAll(async () => {
  browser = await openBrowser();
  shop = await startModuleServer();
  plants = new Set([1n, 2n, 3n]);
  server = await startPlantServer({ store: openSituationStore(plants), corsOrigins: [shop.origin] });
  page = await browser.newPage();
  await page.goto(`${shop.origin}/`);
});

afterAll(async () => {
  await browser.close();
  await shop[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

interface Caller {
  readonly name: string;
  readonly client: Client;
  readonly plant: bigint;
}

const callers: readonly Caller[] = [
  { name: "Connect", client: { protocol: "connect", binary: false }, plant: 1n },
  { name: "binary Connect", client: { protocol: "connect", binary: true }, plant: 2n },
  { name: "gRPC-Web", client: { protocol: "grpc-web", binary: true }, plant: 3n },
];

async function deletePlant({ client }: Caller, call: Omit<Call, "baseUrl">): Promise<string> {
  const options: Call = { baseUrl: `http://127.0.0.1:${server.address.port}`, ...call };
  // Uses a handle, because the compiler would resolve an import here for node.
  const module = await page.evaluateHandle<typeof import("./connect-web-page.ts")>(
    'import("/test/suites/browser/connect-web-page.ts")',
  );
  return await module.evaluate(async (functions, args) => await functions.deletePlant(...args), [
    client,
    options,
  ] as const);
}

describe.each(callers)("connect-web in a page of another origin, $name", (caller) => {
  const token = tokens.good;

  test("deletes a plant once", async () => {
    expect(await deletePlant(caller, { id: caller.plant, token })).toBe("ok");
    expect(plants.has(caller.plant)).toBe(false);
    const result = await deletePlant(caller, { id: caller.plant, token });
    expect(result).toBe(`ConnectError: [not_found] plant ${caller.plant} not found`);
  });

  test.each(
    // oxfmt-ignore
    [
      ["without a token", { id: 9n }, "ConnectError: [unauthenticated] a bearer token is required"],
      ["with a wrong token", { id: 9n, token: tokens.unknown },
        "ConnectError: [unauthenticated] the token is not valid"],
      ["with an id beyond a double's precision", { id: longId, token },
        `ConnectError: [not_found] plant ${longId} not found`],
      ["after its deadline", { id: situations.slow, token, timeoutMs: 300 },
        expect.stringMatching(/^ConnectError: \[deadline_exceeded\]/)],
    ],
  )("a call %s gets the server's error", async (_name, call, want) => {
    expect(await deletePlant(caller, call)).toEqual(want);
  });
});

test("the browser blocks calls from an origin that is not allowed", async () => {
  await using other = await startModuleServer();
  const stranger = await browser.newPage();
  await stranger.goto(`${other.origin}/`);
  const outcome = await stranger.evaluate(
    async ([url, credential]) => {
      const headers = { authorization: credential, "content-type": "application/json" };
      const called = fetch(url, { method: "DELETE", headers });
      return await called.then((response) => String(response.status)).catch(() => "blocked by the browser");
    },
    [`http://127.0.0.1:${server.address.port}/plants/9`, `Bearer ${tokens.good}`] as const,
  );
  expect(outcome).toBe("blocked by the browser");
});
