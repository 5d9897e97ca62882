import type { Browser, Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createOpenApi } from "../../src/gateway/index.ts";
import { KitchenSink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";
import { openBrowser } from "./open-browser.ts";

// The page with a description of every kind of parameter and body in the place of the plant store's.

const whole = createOpenApi([KitchenSink], { info: { title: "Kitchen sink", version: "7" } });
// Every operation at once is more form than a person ever sees.
const shown = ["/v1/string/{f_string}", "/v1/bool/{f_bool}", "/v1/enum/{f_enum}", "/v1/int64/{f_int64}"];
const description = {
  ...whole,
  paths: Object.fromEntries([...shown, "/v1/query", "/v1/sinks"].map((path) => [path, whole.paths[path] ?? {}])),
};

let browser: Browser;
let server: TestPlantServer;
let page: Page;

beforeAll(async () => {
  browser = await openBrowser();
  server = await startPlantServer({ description: { open: true } });
});

afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  page = await browser.newPage();
  await page.route("**/openapi.json", (route) => route.fulfill({ json: description }));
  // It answers in the place of a kitchen sink.
  await page.route("**/v1/**", (route) => route.fulfill({ json: { long: "9007199254740993", list: [], on: true } }));
  await page.goto(`http://127.0.0.1:${server.address.port}/docs`);
  await page.getByRole("heading", { name: "Kitchen sink" }).waitFor();
});

afterEach(() => page.close());

/** Fills in the form of an operation by the names of its fields, sends it, and returns what was sent. */
async function send(operation: string, fields: Readonly<Record<string, string>>): Promise<Request> {
  const article = page.getByRole("article", { name: operation, exact: true });
  for (const [name, value] of Object.entries(fields)) {
    const field = article.getByLabel(new RegExp(`^${name.replace(".", "\\.")}\\b`));
    const isChoice = (await field.evaluate((element) => element.localName)) === "select";
    await (isChoice ? field.selectOption(value) : field.fill(value));
  }
  const sent = page.waitForRequest("**/v1/**");
  await article.getByRole("button", { name: /^Send/ }).click();
  await article.locator(".outcome", { hasText: "200" }).waitFor();
  return await sent;
}

test.each([
  {
    what: "text, escaped",
    operation: "types_14",
    fields: { f_string: "a b/ü?" },
    want: "/v1/string/a%20b%2F%C3%BC%3F",
  },
  { what: "a choice of a boolean", operation: "types_13", fields: { f_bool: "true" }, want: "/v1/bool/true" },
  { what: "a choice of an enum", operation: "types_16", fields: { f_enum: "COLOR_RED" }, want: "/v1/enum/COLOR_RED" },
  {
    what: "every digit of an integer",
    operation: "types_4",
    fields: { f_int64: "9007199254740993" },
    want: "/v1/int64/9007199254740993",
  },
  {
    what: "query parameters that were filled in, a list line by line",
    operation: "query",
    fields: { fInt32: "-7", tags: "a&b\nc", "nested.text": "x" },
    want: "/v1/query?fInt32=-7&tags=a%26b&tags=c&nested.text=x",
  },
])("$what becomes part of the URL", async ({ operation, fields, want }) => {
  const request = await send(operation, fields);
  expect(request.url()).toBe(`http://127.0.0.1:${server.address.port}${want}`);
});

test("a body is sent as JSON, as it was typed", async () => {
  const request = await send("create", { Body: '{"fInt64": "9007199254740993"}' });
  expect([request.method(), request.postData(), request.headers()["content-type"]]).toEqual([
    "POST",
    '{"fInt64": "9007199254740993"}',
    "application/json",
  ]);
});

test("an answer is shown indented, every digit of it", async () => {
  await send("types_14", { f_string: "x" });
  const article = page.getByRole("article", { name: "types_14", exact: true });
  expect(await article.locator(".details pre").first().innerText()).toBe(
    '{\n  "long": "9007199254740993",\n  "list": [],\n  "on": true\n}',
  );
});

test("an interface without credentials asks for none", async () => {
  expect(await page.getByLabel("Bearer token").isVisible()).toBe(false);
  expect(await page.locator(".command").first().innerText()).not.toContain("Authorization");
});

test("text of a description is never read as HTML", async () => {
  const text = "<img src=x onerror=alert(1)> `<b>code</b>`";
  const info = { ...description.info, title: text, description: text };
  await page.route("**/openapi.json", (route) => route.fulfill({ json: { ...description, info } }));
  await page.reload();
  await page.getByRole("heading", { name: text }).waitFor();
  expect(await page.locator("main img, main b").count()).toBe(0);
});
