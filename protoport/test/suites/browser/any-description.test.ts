import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Page, Request } from "playwright-core";
import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { Reading, WatchReadingsRequest } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { createMcp } from "../../../gateway/src/mcp/index.ts";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { FileService, UploadResponseSchema } from "../../../testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createTempFolder, kitchenSinkOptions, shared } from "@protoport/testing";
import { auditAccess } from "./audit-access.ts";
import { fillForm } from "./fill-form.ts";
import { openBrowser, startGateway } from "./open-browser.ts";

// The docs page for a service with all kinds of parameters, bodies and streams.

const services = [GreenhouseService, FileService, KitchenSink, Shelves];
// oxfmt-ignore
const rules = [
  { selector: `${GreenhouseService.typeName}.WatchReadings`,
    pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
  { selector: `${GreenhouseService.typeName}.RecordReadings`, pattern: { case: "post", value: "/readings" },
    body: "*" },
] as const;

const description = createOpenApi(services, {
  operationIds: "rpc",
  info: { title: "Kitchen sink", version: "7" },
  rest: { rules },
  mcp: createMcp({ tools: ["kitchensink.v1.KitchenSink.Query"] }),
  comments: new Map([
    ["kitchensink.v1.KitchenSink.Query", "Asks <img src=x onerror=alert(1)> `<b>code</b>`. And more."],
  ]),
});

/** Resolves when a stream that the caller cancels continues after 400 messages. */
const continued = Promise.withResolvers<void>();

/** Counts to a number. If the number is negative, continues until the caller cancels. */
async function* watchReadings(
  { sensor, count }: WatchReadingsRequest,
  { signal }: HandlerContext,
): AsyncGenerator<{ sensor: string; degreesCelsius: number }> {
  for (let sent = 0; sent < Math.abs(count); sent += 1) {
    if (count < 0 && sent === 400) await continued.promise;
    yield { sensor, degreesCelsius: sent };
  }
  if (count < 0) await once(signal, "abort");
}

async function recordReadings(readings: AsyncIterable<Reading>): Promise<{ count: number }> {
  let count = 0;
  for await (const { degreesCelsius } of readings) count += degreesCelsius;
  return { count };
}

const options: GatewayOptions = {
  ...kitchenSinkOptions,
  rest: { rules },
  // The service's root is an RPC, so the page is at another path.
  endpoints: createDocsPage({ document: () => JSON.stringify(description), open: true }).filter(
    ({ path }) => path !== "/",
  ),
  routes: (router: ConnectRouter) => {
    router.service(GreenhouseService, { watchReadings, recordReadings });
    kitchenSinkOptions.routes(router);
    router.service(FileService, {
      getFile: ({ name }) => ({ contentType: "image/png", data: new TextEncoder().encode(`the bytes of ${name}`) }),
      upload: async (pieces) => {
        const response = create(UploadResponseSchema);
        for await (const { name, file } of pieces) {
          response.name ||= name;
          response.contentType ||= file?.contentType ?? "";
          response.length += BigInt(file?.data.length ?? 0);
        }
        return response;
      },
    });
  },
};

const downloads = createTempFolder();
const browser = shared(() => openBrowser(downloads.path));
const gateway = shared(() => startGateway(options));
let page: Page;
const complaints: string[] = [];

afterAll(() => downloads[Symbol.dispose]());

beforeEach(async () => {
  page = await browser.newPage();
  complaints.length = 0;
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => complaints.push(message.text()));
});

afterEach(async () => {
  expect(complaints).toEqual([]);
  await page.close();
});

async function open(view: string): Promise<void> {
  await page.goto(`${gateway.baseUrl}/docs#/${view}`);
  await page.locator("#view h1").waitFor();
}

async function send(operation: string, fields: Readonly<Record<string, string>>): Promise<Request> {
  await open(`operations/${operation}`);
  await fillForm(page, fields);
  const sent = page.waitForRequest((request) => !request.url().includes("/docs"));
  await page.getByRole("button", { name: /^Send/ }).click();
  await page.locator(".outcome", { hasText: "200" }).waitFor();
  return await sent;
}

test.each([
  ["a selected boolean", "types_13", { f_bool: "true" }, "/v1/bool/true"],
  ["a selected enum value", "types_16", { f_enum: "COLOR_RED" }, "/v1/enum/COLOR_RED"],
  ["every digit of an integer", "types_4", { f_int64: "9007199254740993" }, "/v1/int64/9007199254740993"],
  [
    "query parameters and a list's lines",
    "query",
    { fInt32: "-7", tags: "a&b\nc", "nested.text": "x" },
    "/v1/query?fInt32=-7&tags=a%26b&tags=c&nested.text=x",
  ],
])("the request's URL contains %s from the form", async (_, operation, fields, want) => {
  expect((await send(operation, fields)).url()).toBe(`${gateway.baseUrl}${want}`);
});

test("the form labels a path segment, and rejects a slash in it", async () => {
  await open("operations/segments");
  await fillForm(page, { shelf: "1/2", book: "3" });
  const wrong = page.locator("form input:invalid");
  expect([await wrong.count(), await wrong.getAttribute("id")]).toEqual([1, "path-shelf"]);
  await page.getByText("The part after shelves/ in").waitFor();
});

test("a JSON body is sent unchanged, and the response keeps all digits", async () => {
  const typed = '{"fInt64": 9007199254740993}';
  const request = await send("create", { Body: typed });
  expect([request.method(), request.headers()["content-type"]]).toEqual(["POST", "application/json"]);
  expect(request.postData()).toBe(typed);
  expect(await page.locator(".details pre").first().innerText()).toBe(
    '{\n  "rpc": "Create",\n  "sink": {\n    "fInt64": "9007199254740993"\n  }\n}',
  );
});

test("the initial example body is accepted, and omits output-only fields", async () => {
  await send("create", {});
  await open("operations/updateShelf");
  const body = JSON.parse(await page.getByLabel("Body, JSON").inputValue());
  expect(Object.keys(body)).toEqual(expect.arrayContaining(["theme", "key"]));
  expect(Object.keys(body)).not.toContain("builtAt");
});

test("a stream on the page is shown message by message, in the selected format", async () => {
  const request = await send("watchReadings", { sensor: "palm", count: "3", "Response format": "text/event-stream" });
  expect(request.headers()["accept"]).toBe("text/event-stream");
  await page.locator(".outcome", { hasText: "3 messages" }).waitFor();
  expect((await page.locator(".details pre").first().innerText()).match(/^data: \{"sensor"/gm)).toHaveLength(3);
});

test("a stream on the page does not count a split end event as a message", async () => {
  await page.addInitScript(() => {
    const fetchWhole = globalThis.fetch;
    globalThis.fetch = async (...request) => {
      const response = await fetchWhole(...request);
      const lines = new TransformStream<string, string>({
        transform: (text, controller) => text.match(/.*\n?/g)?.forEach((line) => controller.enqueue(line)),
      });
      const body = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(lines);
      return new Response(body?.pipeThrough(new TextEncoderStream()) ?? null, response);
    };
  });
  await send("watchReadings", { sensor: "palm", count: "3", "Response format": "text/event-stream" });
  await page.locator(".details pre", { hasText: "event: end" }).waitFor();
  await page.getByRole("button", { name: "Send GET", disabled: false }).waitFor();
  expect(await page.locator(".outcome").innerText()).toContain("3 messages");
});

test("a stream on the page is cancelled by the button Stop", async () => {
  await open("operations/watchReadings");
  await page.getByLabel(/^sensor/).fill("palm");
  await page.getByLabel(/^count/).fill("-600");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.locator(".outcome", { hasText: "400 messages" }).waitFor();
  continued.resolve();
  await page.locator(".outcome", { hasText: "600 messages" }).waitFor();
  // Only the end of a long stream is shown.
  expect(await page.locator(".message").count()).toBe(500);
  expect(await page.locator(".message").last().innerText()).toContain("599");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".outcome", { hasText: "Stopped." }).waitFor();
  expect(await page.getByRole("button", { name: "Send GET" }).isEnabled()).toBe(true);
});

test("a stream on the page is shown after the button Stop cancelled an earlier stream", async () => {
  await open("operations/watchReadings");
  await page.getByLabel(/^sensor/).fill("palm");
  await page.getByLabel(/^count/).fill("-3");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.locator(".outcome", { hasText: "3 messages" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".outcome", { hasText: "Stopped." }).waitFor();
  await page.getByLabel(/^count/).fill("2");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.locator(".outcome", { hasText: "2 messages" }).waitFor();
});

test("a stream on the page sends each line in the body as a message", async () => {
  const lines = '{"sensor":"a","degreesCelsius":10}\n{"sensor":"a","degreesCelsius":20}';
  expect((await send("recordReadings", { Body: lines })).headers()["content-type"]).toBe("application/x-ndjson");
  expect(await page.locator(".details pre").first().innerText()).toContain('"count": 30');
});

test("a body of bytes is sent from a file, with the file's content type", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("leaf.txt"), "a leaf");
  await open("operations/upload");
  await page.getByLabel(/^name/).fill("leaf");
  await page.getByLabel("Body, a file").setInputFiles(folder.file("leaf.txt"));
  expect(await page.locator(".command").innerText()).toContain("--data-binary '@leaf.txt'");
  await page.getByRole("button", { name: "Send PUT" }).click();
  await page.locator(".outcome", { hasText: "200" }).waitFor();
  const answer = JSON.parse(await page.locator(".details pre").first().innerText());
  expect(answer).toEqual({ name: "leaf", contentType: "text/plain", length: "6" });
});

test("a body of bytes is sent by a curl command if grpcurl was selected before", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("leaf.txt"), "a leaf");
  await open("operations/upload");
  await page.getByLabel("Language").selectOption("grpcurl");
  // grpcurl cannot send a file.
  await page.getByLabel("Body, a file").setInputFiles(folder.file("leaf.txt"));
  expect(await page.getByLabel("Language").inputValue()).toBe("curl");
  expect(await page.locator(".command").innerText()).toContain("--data-binary '@leaf.txt'");
});

test("a body of bytes can be saved, and is not shown as text", async () => {
  await send("getFile", { name: "leaf" });
  await page.getByRole("link", { name: "Save the body" }).click();
  const saved = (): string[] => readdirSync(downloads.path).map((name) => readFileSync(downloads.file(name), "utf8"));
  await expect.poll(saved).toEqual(["the bytes of leaf"]);
  await page.getByText("17 bytes, image/png").waitFor();
});

test("the page shows an error's message and code", async () => {
  await open("operations/fail");
  await page.getByLabel(/^f_int32/).fill("5");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.locator(".outcome", { hasText: /404\s*NOT_FOUND\s*as asked/ }).waitFor();
  // Chromium logs the response's status 404.
  expect(complaints.splice(0)).toEqual([expect.stringContaining("404")]);
});

test("the search finds operations by words in paths, names and comments", async () => {
  await open("");
  const links = page.locator("#list li:visible a");
  const found = async (words: string): Promise<string[]> => {
    await page.getByLabel("Search").fill(words);
    return await links.allInnerTexts();
  };
  expect(await found("WATCH readings")).toEqual([expect.stringContaining("readings")]);
  expect(await found("and more")).toEqual([expect.stringContaining("/v1/query")]);
  expect(await found("google.rpc")).toEqual(["google.rpc.Status"]);
  await page.getByText("1 found").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "google.rpc.Status" }).waitFor();
  expect(page.url()).toBe(`${gateway.baseUrl}/docs#/schemas/google.rpc.Status`);
});

test("Enter in the search opens the first operation found", async () => {
  await open("");
  await page.getByLabel("Search").fill("and more");
  await page.keyboard.press("Enter");
  await page.locator("#view h1").getByText("Asks").waitFor();
  expect(page.url()).toBe(`${gateway.baseUrl}/docs#/operations/query`);
});

test("a link to an operation or schema opens and focuses it", async () => {
  await open("");
  const heading = page.locator("#view h1");
  await page.locator("#view").getByRole("link", { name: "/v1/sinks", exact: false }).first().click();
  await page.getByRole("heading", { level: 1, name: "Create" }).waitFor();
  expect(await page.title()).toBe("Create · Kitchen sink");
  await page.locator(".reference").getByRole("link", { name: "Sink", exact: true }).first().click();
  await page.getByRole("heading", { level: 1, name: "Sink" }).waitFor();
  expect(await heading.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Create" }).waitFor();
  expect(await page.locator('#list [aria-current="page"]').innerText()).toContain("/v1/sinks");
});

test("the page for a service without credentials has no token field", async () => {
  await open("operations/query");
  expect(await page.getByLabel("Bearer token").isVisible()).toBe(false);
  expect(await page.locator(".command").innerText()).not.toContain("Authorization");
});

test("an RPC's title is its comment, or its name without a comment", async () => {
  await open("operations/create");
  expect(await page.getByText("kitchensink.v1.KitchenSink").count()).toBe(1);
  await open("operations/query");
  expect(await page.locator(".reference").innerText()).toMatch(/^And more\./);
});

test("an RPC's page shows its MCP tool's name", async () => {
  await open("operations/query");
  expect(await page.getByText("MCP tool").innerText()).toBe("MCP tool kitchensink_v1_KitchenSink_Query");
  await open("operations/create");
  expect(await page.getByText("MCP tool").count()).toBe(0);
});

test.each([
  { security: [{ bearer: ["orders:read", "orders:write"] }], shown: ["Scopes orders:read orders:write"] },
  { security: [], shown: ["No credential"] },
  { security: undefined, shown: [] },
])("an RPC's page shows $shown for the requirements $security", async ({ security, shown }) => {
  const paths = { "/a": { get: { operationId: "read", responses: {}, ...(security && { security }) } } };
  const json = { openapi: "3.1.0", info: { title: "a", version: "1" }, security: [{ bearer: [] }], paths };
  await page.route("**/openapi.json", (route) => route.fulfill({ json }));
  await open("operations/read");
  const labels = page.locator(".operation > header").getByText(/^(?:Scopes|No credential)/);
  expect(await labels.allInnerTexts()).toEqual(shown);
});

test("text in a description is never interpreted as HTML", async () => {
  await open("operations/query");
  await page.getByRole("heading", { level: 1, name: "Asks <img src=x onerror=alert(1)>" }).waitFor();
  expect(await page.locator("main img, main b").count()).toBe(0);
});

test.each([
  "",
  "operations/query",
  "operations/create",
  "operations/upload",
  "operations/watchReadings",
  "schemas/Shelf",
])("the view %j fits into 320 pixels without accessibility violations", async (view) => {
  await page.setViewportSize({ width: 320, height: 640 });
  await open(view);
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  const overflow = await page.locator("html").evaluate((root) => root.scrollWidth - root.clientWidth);
  expect([overflow, (await auditAccess(page)).violations]).toEqual([0, []]);
});
