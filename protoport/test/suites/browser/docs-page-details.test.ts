import { writeFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { createTempFolder, shared } from "@protoport/testing";
import { openBrowser, startGateway } from "./open-browser.ts";

// The docs page's second conditions, resets and limits, for a description in which they matter.

const shelfSchema = {
  type: "object",
  properties: {
    id: { type: "string", readOnly: true },
    secret: { type: "string", writeOnly: true },
    theme: { type: "string" },
    wood: { type: "integer", "x-value-names": { 1: "OAK", 2: "PINE" } },
  },
};
const $ref = "#/components/schemas/Shelf";
const kindsSchema = {
  type: "object",
  required: ["choice"],
  properties: {
    choice: { anyOf: [{ type: "string" }, { type: "integer" }] },
    map: { type: "object", additionalProperties: { $ref }, readOnly: true },
    list: { type: "array", items: { $ref }, writeOnly: true },
    time: { type: "string", format: "date-time", deprecated: true },
  },
};
const json = { "application/json": { schema: { $ref } } };
const lines = { "text/event-stream": { itemSchema: { $ref } }, "application/x-ndjson": { itemSchema: { $ref } } };

const queryParameters = (count: number): object[] =>
  Array.from({ length: count }, (_, at) => ({ name: `q${at}`, in: "query", schema: { type: "string" } }));

const description = {
  openapi: "3.1.0",
  info: { title: "Shelves", version: "1", license: { name: "MIT" }, contact: { name: "Shelves" } },
  security: [{ bearer: [] }],
  paths: {
    // oxfmt-ignore
    "/v1/shelves": {
      get: { operationId: "list", tags: ["Reading"],
        parameters: [...queryParameters(8), { name: "late", in: "query", required: true, schema: { type: "string" } }],
        responses: {
          200: { description: "The shelves.", content: lines },
          400: { description: "The filter is invalid.", content: json },
          404: { description: "No such room.", content: json },
        } },
      post: { operationId: "build", tags: ["Writing"],
        parameters: [...queryParameters(5), { name: "late", in: "query", required: true, schema: { type: "string" } }],
        requestBody: { required: true, content: json }, responses: {
          200: { description: "The shelf.", content: json },
          default: { description: "An error.", content: json },
        } },
    },
    "/v1/photos": {
      put: {
        operationId: "upload",
        tags: ["Writing"],
        deprecated: true,
        parameters: [{ name: "isPublic", in: "query", schema: { type: "boolean" } }],
        requestBody: { content: { "*/*": { schema: { format: "binary" } } } },
        responses: { 200: { description: "The photo." } },
      },
    },
    ...Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [
        `/v1/copies/${at}`,
        { get: { operationId: `copy${at}`, tags: ["Copies"], responses: { 200: { description: "A copy." } } } },
      ]),
    ),
  },
  components: { schemas: { Shelf: shelfSchema, Wood: { type: "string", enum: ["OAK", "PINE"] }, Kinds: kindsSchema } },
};

const browser = shared(() => openBrowser());
const endpoints = createDocsPage({ document: () => description, open: true });
const gateway = shared(() => startGateway({ routes: () => {}, endpoints }));
let page: Page;

beforeEach(async () => {
  page = await browser.newPage({ viewport: { width: 1200, height: 500 } });
});

afterEach(() => page.close());

async function open(view: string, changes: object = {}): Promise<void> {
  await page.route("**/openapi.json", (route) => route.fulfill({ json: { ...description, ...changes } }));
  await page.goto(`${gateway.baseUrl}/docs#/${view}`);
  await page.locator("#view h1").waitFor();
}

async function sendFor(operation: string, status: number, type: string, body: string): Promise<void> {
  await open(`operations/${operation}`);
  await page.route("**/v1/**", (route) => route.fulfill({ status, headers: { "content-type": type }, body }));
  await page.getByLabel(/^late/).fill("a");
  await page.getByRole("button", { name: /^Send/ }).click();
  await page.locator(".outcome .badge").first().waitFor();
  await page.getByRole("button", { name: /^Send/, disabled: false }).waitFor();
}

test("the token form shows the end only of tokens with at least 16 characters", async () => {
  await open("");
  const token = page.getByLabel("Bearer token");
  await token.fill("0123456789abcde");
  await token.press("Enter");
  await page.getByText("Authorized: a token is sent with every request").waitFor();
  await token.fill("0123456789abcdef");
  await token.press("Enter");
  await page.getByText("Authorized: the token ending in cdef is sent with every request").waitFor();
});

test("the token form is empty after Authorize, and focused after Forget", async () => {
  await open("");
  const token = page.getByLabel("Bearer token");
  await token.fill("a token");
  await page.getByRole("button", { name: "Authorize" }).click();
  expect(await token.inputValue()).toBe("");
  await page.getByRole("button", { name: "Forget" }).click();
  expect(await token.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
  expect(await page.getByRole("button", { name: "Forget" }).isVisible()).toBe(false);
});

test("the server selection names this server if the description lists it without text", async () => {
  await open("", { servers: [{ url: "/" }, { url: "https://b.example", description: "spare" }] });
  const options = page.getByLabel("Server", { exact: true }).locator("option");
  expect(await options.allTextContents()).toEqual([`${gateway.baseUrl} (this server)`, "https://b.example (spare)"]);
});

test("the server selection is hidden if there is only one server", async () => {
  await open("");
  expect(await page.getByLabel("Server", { exact: true }).isVisible()).toBe(false);
});

test("a view starts at its top when a link opens it", async () => {
  await open("");
  const link = page.locator("#view a", { hasText: "/v1/copies/59" });
  await link.scrollIntoViewIfNeeded();
  expect(await page.evaluate(() => scrollY)).toBeGreaterThan(0);
  await page.evaluate(() => (document.body.style.minHeight = "5000px"));
  await link.click();
  await page.getByRole("heading", { level: 1, name: "copy59" }).waitFor();
  expect(await page.evaluate(() => scrollY)).toBe(0);
});

test("a view is the overview if a link names a missing operation", async () => {
  await open("operations/gone");
  await page.getByRole("heading", { level: 1, name: "Shelves" }).waitFor();
});

test("a view shows the reason if the description cannot be loaded", async () => {
  await page.route("**/openapi.json", (route) => route.fulfill({ status: 503, json: description }));
  await page.goto(`${gateway.baseUrl}/docs`);
  const reason = "Cannot load the API description: the server responded with status 503.";
  expect(await page.getByRole("alert").innerText()).toBe(reason);
});

test("a view keeps the language selected in another view", async () => {
  await open("operations/list");
  await page.getByLabel("Language").selectOption("Python");
  await page.locator("#list a", { hasText: "/v1/copies/0" }).click();
  await page.getByRole("heading", { level: 1, name: "copy0" }).waitFor();
  expect(await page.getByLabel("Language").inputValue()).toBe("Python");
});

test("a view omits a contact that repeats the title", async () => {
  await open("");
  expect(await page.locator(".about .note").innerText()).toBe("Version 1 · MIT licence");
});

test("a view links a contact without a name by its address", async () => {
  await open("", { info: { title: "Shelves", version: "1", contact: { email: "a@b.example" } } });
  expect(await page.locator(".about a").getAttribute("href")).toBe("mailto:a@b.example");
  expect(await page.locator(".about .note").innerText()).toBe("Version 1 · mailto:a@b.example");
});

test("a view shows an enum's values, and the names of a field's values", async () => {
  await open("schemas/Wood");
  expect(await page.locator("#view article p").innerText()).toBe("OAK, PINE");
  await page.locator("#list a", { hasText: "Shelf" }).click();
  await page.getByText("Names of its 2 values").click();
  expect((await page.locator("dl.values").innerText()).split(/\s+/)).toEqual(["1", "OAK", "2", "PINE"]);
});

test("a schema's view shows the type and the marks of each field", async () => {
  await open("schemas/Kinds");
  expect(await page.title()).toBe("Kinds · Shelves");
  const ofField = async (field: string): Promise<string[]> =>
    await page
      .locator("#view dt", { hasText: new RegExp(`^${field}`) })
      .locator("span")
      .allTextContents();
  expect(await ofField("choice")).toEqual(["string or integer", "required"]);
  expect(await ofField("map")).toEqual(["map of Shelf", "read-only"]);
  expect(await ofField("list")).toEqual(["array of Shelf", "write-only"]);
  expect(await ofField("time")).toEqual(["string, date-time", "deprecated"]);
});

test("the sidebar marks a deprecated operation, as its view does", async () => {
  await open("operations/upload");
  expect(await page.locator("#list li.deprecated").allInnerTexts()).toEqual([expect.stringContaining("/v1/photos")]);
  expect(await page.locator("#view h1").innerText()).toMatch(/^upload\s+deprecated$/i);
});

test("the sidebar closes on a narrow page when a link is followed", async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  await open("");
  await page.getByRole("button", { name: "Menu" }).click();
  await page.locator("#list a", { hasText: "/v1/copies/0" }).click();
  await page.getByRole("heading", { level: 1, name: "copy0" }).waitFor();
  expect(await page.locator("#list").isVisible()).toBe(false);
});

test("the sidebar scrolls to the current link", async () => {
  await open("operations/copy59");
  const { y = 0 } = (await page.locator("#list [aria-current]").boundingBox()) ?? {};
  expect(y).toBeLessThan(500);
});

test("the sidebar hides groups without matches, and shows all after the search", async () => {
  await open("");
  const headings = page.locator("#list h2:visible");
  const search = page.getByLabel("Search");
  await search.fill("writing");
  expect(await headings.allInnerTexts()).toEqual(["Writing"]);
  await search.fill(" ");
  expect(await headings.allInnerTexts()).toEqual(["Reading", "Writing", "Copies", "Schemas"]);
  expect(await page.locator("#found").innerText()).toBe("");
});

test("an operation's reference collapses error responses if there are three responses", async () => {
  const opened = (): Promise<boolean[]> =>
    page
      .locator("details.response")
      .evaluateAll((all) => all.map((each) => each instanceof HTMLDetailsElement && each.open));
  await open("operations/list");
  expect(await opened()).toEqual([true, false, false]);
  await page.locator("#list a", { hasText: "POST" }).click();
  await page.getByRole("heading", { level: 1, name: "build" }).waitFor();
  expect(await opened()).toEqual([true, true]);
});

test("an operation's reference omits write-only fields from response examples, and read-only from request examples", async () => {
  await open("operations/build");
  const examples = await page.locator(".reference details pre").allTextContents();
  const fields = examples.map((text) => Object.keys(JSON.parse(text)).join(" "));
  expect(fields).toEqual(["secret theme wood", "id theme wood", "id theme wood"]);
});

test("the request form has required parameters first, and collapses more than six optional ones", async () => {
  await open("operations/list");
  const labels = page.locator(".try-it form label");
  expect((await labels.first().innerText()).split(" ")[0]).toBe("late");
  await page.getByText("8 more parameters").waitFor();
  expect(await labels.nth(1).isVisible()).toBe(false);
  await page.locator("#list a", { hasText: "POST" }).click();
  await page.getByRole("heading", { level: 1, name: "build" }).waitFor();
  expect(await labels.nth(1).isVisible()).toBe(true);
});

test("the request form trims values, and shows the complete example body", async () => {
  await open("operations/build");
  await page.getByLabel(/^late/).fill(" a ");
  expect(await page.locator(".command").innerText()).toContain("/v1/shelves?late=a'");
  const body = page.getByLabel("Body, JSON");
  expect(await body.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)).toBe(0);
});

test("the request form sends neither an empty content type nor an unselected boolean", async () => {
  await open("operations/upload");
  using folder = createTempFolder();
  writeFileSync(folder.file("leaf.leaf"), "a leaf");
  await page.getByLabel("Body, a file").setInputFiles(folder.file("leaf.leaf"));
  expect(await page.getByLabel("Content type").inputValue()).toBe("application/octet-stream");
  expect(await page.locator(".command").innerText()).toContain(`'${gateway.baseUrl}/v1/photos'`);
});

test("the request form does not send an empty body if the body is required", async () => {
  await open("operations/build");
  await page.getByLabel(/^late/).fill("a");
  await page.getByLabel("Body, JSON").fill("");
  await page.getByRole("button", { name: "Send POST" }).click();
  expect(await page.locator("form :invalid").getAttribute("id")).toBe("body");
});

test("the request form removes the previous response, and is disabled until the next one", async () => {
  await sendFor("build", 200, "application/json", "{}");
  await page.unroute("**/v1/**");
  await page.route("**/v1/**", () => {});
  const button = page.getByRole("button", { name: "Send POST" });
  await button.click();
  expect([await page.locator(".outcome").innerText(), await page.locator(".details").innerText()]).toEqual(["", ""]);
  expect(await button.isDisabled()).toBe(true);
});

test("the button Copy copies the shown program", async () => {
  await open("operations/list");
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text) => void (document.title = text);
  });
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.title()).toMatch(/^curl -iN/);
});

test.each([
  { name: "one message", body: '{"id":"1"}\n', want: "1 message" },
  { name: "no messages", body: "", want: "0 messages" },
])("a response on the page is counted when a stream has $name", async ({ body, want }) => {
  await sendFor("list", 200, "application/x-ndjson", body);
  expect(await page.locator(".outcome span").nth(1).innerText()).toBe(want);
});

test("a response on the page has its description when an error has the type of a stream", async () => {
  await sendFor("list", 400, "application/x-ndjson", '{"id":"1"}\n');
  expect(await page.locator(".outcome span").nth(1).innerText()).toBe("The filter is invalid.");
});

test("a response on the page has its description when the error's message is not a string", async () => {
  await sendFor("build", 500, "application/json", '{"message":7}');
  expect(await page.locator(".outcome span").nth(1).innerText()).toBe("An error.");
});

test("a response on the page is shown as text without a content type", async () => {
  await sendFor("build", 200, "", "a text");
  expect(await page.locator(".details pre").first().innerText()).toBe("a text");
});

test.each([
  { name: "highlighted", length: 10, isHighlighted: true },
  { name: "shown without highlighting", length: 256 * 1024, isHighlighted: false },
])("a response on the page is $name with a string of $length characters", async ({ length, isHighlighted }) => {
  await sendFor("build", 200, "application/json", JSON.stringify({ theme: "t".repeat(length) }));
  expect(await page.locator(".details .json-string").count()).toBe(isHighlighted ? 1 : 0);
});

test("a response on the page has empty objects and arrays on one line", async () => {
  await sendFor("build", 200, "application/json", '{"a":{},"b":[]}');
  expect(await page.locator(".details pre").first().innerText()).toBe('{\n  "a": {},\n  "b": []\n}');
});
