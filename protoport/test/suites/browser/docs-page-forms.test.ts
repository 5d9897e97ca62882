import { createServer } from "node:http";
import type { Page } from "playwright-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { shared, startOnLoopback } from "@protoport/testing";
import { openBrowser, startGateway } from "./open-browser.ts";

// The docs page's forms, references and responses, for descriptions with rare members. Another server receives the
// requests.

const $ref = "#/components/schemas/Shelf";
const json = { "application/json": { schema: { $ref } } };
const ok = { 200: { description: "The shelf.", content: json } };
const components = {
  // oxfmt-ignore
  schemas: {
    Shelf: { type: "object", description: "About *shelves*.", properties: {
        theme: { type: "string" },
        size: { type: "object", description: "About sizes.", properties: { width: { type: "integer" } } },
      } },
    Wood: { type: "string", enum: ["OAK", "PINE"] },
  },
};

let received: { readonly cookie: string | undefined; readonly authorization: string | undefined }[];
let page: Page;

const server = createServer((request, response) => {
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-allow-headers", "authorization, content-type");
  if (request.method === "OPTIONS") return void response.end();
  request.resume().on("end", () => {
    const { cookie, authorization } = request.headers;
    received.push({ cookie, authorization });
    const isStream = request.url === "/v1/stream";
    response.writeHead(200, { "content-type": isStream ? "application/x-ndjson" : "application/json" });
    if (isStream) response.write('{"id":"1"}\n{"id":');
    else if (request.url === "/v1/broken") response.write('{"id":', () => request.socket.end());
    else response.end("{}");
  });
});

const browser = shared(() => openBrowser());
const other = shared(() => startOnLoopback(server));
const document = (): object => ({ servers: [{ url: other.baseUrl }] });
const endpoints = createDocsPage({ document, open: true });
const gateway = shared(() => startGateway({ routes: () => {}, endpoints }));

beforeEach(async () => {
  received = [];
  page = await browser.newPage();
});

afterEach(() => page.close());

async function open(view: string, members: object): Promise<void> {
  const description = { openapi: "3.1.0", info: { title: "Shelves", version: "1" }, paths: {}, components, ...members };
  await page.route("**/openapi.json", (route) => route.fulfill({ json: description }));
  await page.goto(`${gateway.baseUrl}/docs#/${view}`);
  await page.locator("#view h1").waitFor();
}

async function openOperation(operation: object, members: object = {}, path = "/v1/shelves"): Promise<void> {
  const paths = { [path]: { post: { operationId: "build", responses: ok, ...operation } } };
  await open("operations/build", { paths, ...members });
}

function parameters(count: number, members: object = {}): object[] {
  const parameter = { in: "query", schema: { type: "string" }, ...members };
  return Array.from({ length: count }, (_, at) => ({ name: `p${at}`, ...parameter }));
}

async function send(): Promise<void> {
  const button = page.getByRole("button", { name: "Send POST" });
  await button.click();
  await page.locator(".outcome .badge").first().waitFor();
  await page.getByRole("button", { name: "Send POST", disabled: false }).waitFor();
}

async function sendFor(type: string, body: string | Buffer, status = 200): Promise<void> {
  await page.route("**/v1/**", (route) => route.fulfill({ status, headers: { "content-type": type }, body }));
  await send();
}

const command = (): Promise<string> => page.locator(".command").innerText();

test.each(["Bearer a-token", "authorization:bearer  a-token", " a-token "])(
  "the token form sends the token of the text %j without cookies",
  async (text) => {
    const { host } = new URL(other.baseUrl);
    await page.context().addCookies([{ name: "a", value: "b", url: `http://${host}` }]);
    await openOperation({}, { security: [{ bearer: [] }], servers: [{ url: other.baseUrl }] });
    await page.getByLabel("Server", { exact: true }).selectOption(other.baseUrl);
    await page.getByLabel("Bearer token").fill(text);
    await page.getByRole("button", { name: "Authorize" }).click();
    await send();
    expect(received).toEqual([{ authorization: "Bearer a-token", cookie: undefined }]);
  },
);

describe("the request form", () => {
  test.each([
    { optional: 6, isVisible: true },
    { optional: 7, isVisible: false },
  ])("with $optional optional parameters shows them ($isVisible) without a click", async ({ optional, isVisible }) => {
    await openOperation({ parameters: parameters(optional) });
    expect(await page.getByLabel(/^p0/).isVisible()).toBe(isVisible);
    expect(await page.getByText("7 more parameters").count()).toBe(isVisible ? 0 : 1);
  });

  test.each([
    { value: "0", isValid: true },
    { value: "-0", isValid: false },
  ])("with the integer $value has the validity $isValid before it is sent", async ({ value, isValid }) => {
    await openOperation({ parameters: parameters(1, { schema: { type: "integer" } }) });
    await page.getByLabel(/^p0/).fill(value);
    expect(await page.locator("form :invalid").count()).toBe(isValid ? 0 : 1);
  });

  test("offers the values of a parameter whose schema is a component", async () => {
    await openOperation({ parameters: parameters(1, { schema: { $ref: "#/components/schemas/Wood" } }) });
    expect(await page.getByLabel(/^p0/).locator("option").allTextContents()).toEqual(["", "OAK", "PINE"]);
  });

  test("labels optional parameters, and sends a list's lines separately", async () => {
    const list = { name: "tags", in: "query", required: true, schema: { type: "array", items: { type: "string" } } };
    await openOperation({ parameters: [list, ...parameters(1)] });
    const labels = await page.locator(".try-it form label").allInnerTexts();
    expect(labels).toEqual(["tags array of string", "p0 string, optional"]);
    await page.getByLabel(/^tags/).fill("a\nb");
    expect(await command()).toContain("/v1/shelves?tags=a&tags=b'");
  });

  test("sends neither a body nor its type if the body is blank", async () => {
    await openOperation({ requestBody: { content: json } });
    expect(await command()).toContain("Content-Type: application/json");
    await page.getByLabel("Body, JSON").fill(" \n ");
    expect(await command()).not.toMatch(/Content-Type|--data-binary/);
  });

  test("shows at most 18 lines of a body", async () => {
    const properties = Object.fromEntries(
      parameters(30).map((schema, at) => [`f${at}`, { ...schema, type: "string" }]),
    );
    const content = { "application/json": { schema: { type: "object", properties } } };
    await openOperation({ requestBody: { content } });
    const body = page.getByLabel("Body, JSON");
    expect([(await body.inputValue()).split("\n").length, await body.getAttribute("rows")]).toEqual([32, "18"]);
  });

  test("shows the example of a stream on one line", async () => {
    await openOperation({ requestBody: { content: { "application/jsonl": { itemSchema: { $ref } } } } });
    const body = page.getByLabel("Body, one JSON message per line");
    expect(await body.inputValue()).toBe('{"theme":"text","size":{"width":7}}');
    expect(await body.getAttribute("required")).toBe(null);
  });

  test("offers the formats of the default response if no other is successful", async () => {
    const types = { "text/plain": {}, "application/json": {} };
    await openOperation({ responses: { 400: { description: "a" }, default: { description: "b", content: types } } });
    expect(await page.getByLabel("Response format").inputValue()).toBe("application/json");
    expect(await command()).toContain("-H 'Accept: application/json'");
  });

  test("has the content type of the file selected last", async () => {
    await openOperation({ requestBody: { content: { "*/*": { schema: { format: "binary" } } } } });
    const file = page.getByLabel("Body, a file");
    await file.setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
    await file.setInputFiles({ name: "b.png", mimeType: "image/png", buffer: Buffer.from("b") });
    expect(await page.getByLabel("Content type").inputValue()).toBe("image/png");
    expect(await command()).toMatch(/Content-Type: image\/png.*@b\.png/s);
  });

  test("offers grpcurl only for an RPC", async () => {
    await openOperation({});
    const languages = page.getByLabel("Language").locator("option");
    expect(await languages.allTextContents()).toEqual(["curl", "fetch", "Python", "Go"]);
    await page.unroute("**/openapi.json");
    await openOperation({ "x-rpc": { procedure: "/a.A/Build", path: "/v1/shelves" } });
    await page.reload();
    await page.getByText("RPC a.A/Build").waitFor();
    expect(await languages.allTextContents()).toEqual(["curl", "fetch", "Python", "Go", "grpcurl", "buf"]);
  });
});

describe("an operation's reference", () => {
  test.each([
    { count: 8, isCollapsed: false },
    { count: 9, isCollapsed: true },
  ])("with $count parameters has a collapsed list ($isCollapsed) of all parameters", async ({ count, isCollapsed }) => {
    await openOperation({ parameters: parameters(count) });
    expect(await page.getByText("All 9 parameters").count()).toBe(isCollapsed ? 1 : 0);
    expect(await page.locator(".reference dt").first().isVisible()).toBe(!isCollapsed);
  });

  test("groups path, query and header parameters", async () => {
    const places = ["header", "query", "path", "cookie"];
    await openOperation({
      description: "About *building*.",
      parameters: places.map((place) => ({ name: `a ${place}`, in: place, description: `About ${place}.` })),
    });
    expect(await page.locator(".reference > p").innerText()).toBe("About building.");
    const headings = await page.locator(".reference h2").allInnerTexts();
    expect(headings).toEqual(["Path parameters", "Query parameters", "Header fields", "Responses"]);
    const descriptions = await page.locator(".reference dd").allInnerTexts();
    expect(descriptions.slice(0, 3)).toEqual(["About path.", "About query.", "About header."]);
  });

  test("describes streams, bytes and responses without a body", async () => {
    const lines = { "application/jsonl": { itemSchema: { $ref } }, "text/event-stream": { itemSchema: { $ref } } };
    await openOperation({
      requestBody: { content: { "*/*": { schema: { format: "binary" } } } },
      responses: { 200: { description: "a", content: lines }, 204: { description: "b" } },
    });
    expect(await page.locator(".reference").innerText()).toMatch(
      /Bytes of any type.*stream of Shelf as application\/jsonl text\/event-stream/s,
    );
    expect(await page.locator("div.response").innerText()).toMatch(/^204\s+b\s+No body$/);
    expect(await page.locator(".badge.bad").count()).toBe(0);
  });

  test("shows the fields of an object without a name inline", async () => {
    await openOperation({});
    expect(await page.locator(".reference dl dl dt").allInnerTexts()).toEqual([expect.stringMatching(/^width/)]);
    await page.locator(".reference dd", { hasText: "About sizes." }).waitFor();
  });
});

test("a view names a contact, and links its URL rather than its address", async () => {
  const contact = { name: "Ann", url: "https://a.example/", email: "a@b.example" };
  await open("", { info: { title: "Shelves", version: "2", description: "About *it*.", contact } });
  expect(await page.locator(".about").innerText()).toMatch(/Version 2 · Ann\s+About it\.$/);
  expect(await page.locator(".about a").getAttribute("href")).toBe("https://a.example/");
});

test("a view is the operation if the API has only one", async () => {
  await open("", { paths: { "/v1/shelves": { post: { operationId: "build", responses: ok } } } });
  await page.getByRole("heading", { level: 2, name: "build" }).waitFor();
  await page.getByRole("button", { name: "Send POST" }).waitFor();
  expect(await page.locator(".group").count()).toBe(0);
});

test("a view is kept when a link within the page is followed", async () => {
  await openOperation({});
  await page.evaluate(() => (location.hash = "#content"));
  await page.getByRole("heading", { level: 1, name: "build" }).waitFor();
  expect(await page.title()).toBe("build · Shelves");
});

test.each(["Gone", "constructor", "%"])("a view is the overview for the missing schema %s in a link", async (name) => {
  await open(`schemas/${name}`, {});
  expect([await page.title(), await page.locator("#list [aria-current]").count()]).toEqual(["Shelves 1", 0]);
  await page.evaluate(() => (location.hash = ""));
  await page.locator('#list [aria-current="page"]', { hasText: "Overview" }).waitFor();
});

test("a view shows a schema's description and example", async () => {
  await open("schemas/Shelf", {});
  expect(await page.locator("article > p").innerText()).toBe("About shelves.");
  expect(JSON.parse(await page.locator("article > pre").innerText())).toEqual({ theme: "text", size: { width: 7 } });
});

test("a response is marked as incomplete when a stream loses its connection", async () => {
  await openOperation({}, { servers: [{ url: other.baseUrl }] }, "/v1/stream");
  await page.getByLabel("Server", { exact: true }).selectOption(other.baseUrl);
  await page.getByRole("button", { name: "Send POST" }).click();
  await page.locator(".outcome", { hasText: "1 message" }).waitFor();
  for (const socket of other.sockets) socket.destroy();
  await page.locator(".outcome .bad", { hasText: "incomplete" }).waitFor();
  expect(await page.locator(".outcome").innerText()).toMatch(
    /^200\s*1 message\s*\d+ ms\s*incomplete\s*The connection was lost before the end of the response\.$/,
  );
  expect(await page.locator(".message").allTextContents()).toEqual(['{"id":"1"}\n']);
});

test("a response is marked as incomplete when its body is truncated", async () => {
  await openOperation({}, { servers: [{ url: other.baseUrl }] }, "/v1/broken");
  await page.getByLabel("Server", { exact: true }).selectOption(other.baseUrl);
  await send();
  expect(await page.locator(".outcome").innerText()).toMatch(/^incomplete\s*The connection was lost/);
});

test("a response has highlighted keys, strings and numbers with their escapes", async () => {
  await openOperation({});
  const text = String.raw`{"a\"b\\":"c:d,{e}","f":-1.50e400,"g":[true,null]}`;
  await sendFor("application/problem+json; charset=utf-8", text);
  const parts = (kind: string): Promise<string[]> => page.locator(`.details .json-${kind}`).allTextContents();
  expect([await parts("key"), await parts("string")]).toEqual([[String.raw`"a\"b\\"`, '"f"', '"g"'], ['"c:d,{e}"']]);
  expect(await parts("number")).toEqual(["-1.50e400", "true", "null"]);
  // oxfmt-ignore
  const shown = [
    "{", String.raw`  "a\"b\\": "c:d,{e}",`, '  "f": -1.50e400,', '  "g": [', "    true,", "    null", "  ]", "}",
  ];
  expect(await page.locator(".details pre").first().innerText()).toBe(shown.join("\n"));
});

test.each([
  { type: "text/html", want: "a" },
  { type: "application/xml", want: "a" },
  { type: "application/atom+xml", want: "a" },
  { type: "application/octet-stream", want: /Save the body 1 bytes, application\/octet-stream/ },
])("a response of the type $type is shown as text or saved", async ({ type, want }) => {
  await openOperation({});
  await sendFor(type, "a");
  expect(await page.locator(".details > :first-child").innerText()).toEqual(
    typeof want === "string" ? want : expect.stringMatching(want),
  );
});

test("a response names an error's numbers, but not a successful response's", async () => {
  const code = { type: "integer", "x-value-names": { 5: "NOT_FOUND" } };
  const coded = { "application/json": { schema: { type: "object", properties: { code } } } };
  const responses = { 200: { description: "a", content: coded }, "4XX": { description: "b", content: coded } };
  await openOperation({ responses });
  await sendFor("application/json", '{"code":5,"id":{"code":6}}', 404);
  expect(await page.locator(".outcome .badge").allInnerTexts()).toEqual(["404", "NOT_FOUND"]);
  expect(await page.locator(".outcome .bad").count()).toBe(2);
  expect(await page.locator(".json-note").allInnerTexts()).toEqual([" NOT_FOUND"]);
  await page.unroute("**/v1/**");
  await sendFor("application/json", '{"code":5,"message":"c"}');
  await page.locator(".outcome", { hasText: "200" }).waitFor();
  expect(await page.locator(".outcome span").nth(1).innerText()).toBe("a");
  expect(await page.locator(".json-note, .bad").filter({ hasText: "NOT" }).count()).toBe(0);
});

test("the search finds operations with all words, in their RPC, summary or group", async () => {
  const operation = (members: object): object => ({ get: { responses: ok, ...members } });
  const paths = {
    "/a": operation({ summary: "Red oak", tags: ["Wood"] }),
    "/b": operation({ summary: "Red pine", "x-rpc": { procedure: "/forest.v1.Trees/Get", path: "/b" } }),
  };
  await open("", { paths });
  const found = async (words: string): Promise<string[]> => {
    await page.getByLabel("Search").fill(words);
    return (await page.locator("#list li:visible .path").allInnerTexts()).map((text) => text.trim());
  };
  expect([await found("red"), await found("OAK red")]).toEqual([["/a", "/b"], ["/a"]]);
  expect([await found("trees/get"), await found("wood get")]).toEqual([["/b"], ["/a"]]);
  await page.getByText("1 found").waitFor();
  expect(await found("none")).toEqual([]);
  await page.getByText("0 found").waitFor();
});
