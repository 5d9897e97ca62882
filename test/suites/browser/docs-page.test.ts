import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from "vitest";
import type { AdmitRequest } from "@protoport/gateway";
import { openMemoryStore } from "../../../src/stores/index.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../../support/server/plant-server.ts";
import { auditAccess } from "../../../protoport/test/suites/browser/audit-access.ts";
import { openBrowser } from "../../../protoport/test/suites/browser/open-browser.ts";

/** Larger than any integer that a double represents exactly, so that a conversion to double is detected. */
const longId = 2n ** 53n + 1n;
/** The folder for screenshots. If the folder is not set, the tests take no screenshots. */
const screenshots = process.env["SCREENSHOT_FOLDER"];

let browser: Browser;
let plants: Set<bigint>;
let server: TestPlantServer;
let baseUrl: string;
beforeAll(async () => void (browser = await openBrowser()));
afterAll(() => browser.close());
beforeEach(async () => {
  plants = new Set([1n, longId]);
  const publicUrl = new URL("https://plants.example/garden");
  server = await startPlantServer({ store: openMemoryStore(plants), publicUrl, docs: "open" });
  baseUrl = `http://127.0.0.1:${server.address.port}/garden`;
});

afterEach(() => server[Symbol.asyncDispose]());

interface Visit {
  readonly page: Page;
  readonly requests: string[];
  readonly complaints: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

async function visit(options: BrowserContextOptions = {}, url: string = baseUrl): Promise<Visit> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(`${url}/`);
  await page.getByRole("heading", { name: "Plant Store" }).waitFor();
  return { page, requests, complaints, [Symbol.asyncDispose]: () => context.close() };
}

async function authorize(page: Page, token: string): Promise<void> {
  await page.getByLabel("Bearer token").fill(token);
  await page.getByRole("button", { name: "Authorize" }).click();
}

async function sendDelete(page: Page, id: string): Promise<{ outcome: string; details: string }> {
  await page.getByLabel(/^id/).fill(id);
  const responded = page.waitForResponse((response) => response.url().endsWith(`/plants/${id}`));
  await page.getByRole("button", { name: "Send DELETE" }).click();
  const { status } = await responded.then((response) => ({ status: response.status() }));
  const outcome = page.locator(".outcome", { hasText: String(status) });
  await page.getByRole("button", { name: "Send DELETE", disabled: false }).waitFor();
  return { outcome: await outcome.innerText(), details: (await page.locator(".details").textContent()) ?? "" };
}

describe("a user with a token", () => {
  test("deletes a plant, and gets NOT_FOUND for the second deletion", async () => {
    await using visited = await visit();
    const { page } = visited;
    await authorize(page, tokens.good);
    const first = await sendDelete(page, "1");
    expect(first.outcome).toMatch(/^204\s+The plant is deleted\./);
    expect(first.details).toContain("No body");
    expect(plants.has(1n)).toBe(false);
    const second = await sendDelete(page, "1");
    expect(second.outcome).toMatch(/^400\s+NOT_FOUND\s+plant 1 not found/);
    expect(second.details).toContain('{\n  "error": 5 NOT_FOUND,\n  "message": "plant 1 not found"\n}');
    expect(second.details).toContain("content-type: application/json");
  });

  test("deletes the plant with exactly the entered id", async () => {
    await using visited = await visit();
    await authorize(visited.page, tokens.good);
    const { outcome } = await sendDelete(visited.page, String(longId));
    expect(outcome).toMatch(/^204/);
    expect([...plants]).toEqual([1n]);
  });

  test("stays authorized after a reload, until the button Forget removes the token", async () => {
    await using visited = await visit();
    const { page } = visited;
    await authorize(page, tokens.good);
    await page.reload();
    expect((await sendDelete(page, "1")).outcome).toMatch(/^204/);
    await page.getByRole("button", { name: "Forget" }).click();
    await page.getByText("Token removed. Requests are now sent without a token.").waitFor();
    expect((await sendDelete(page, "1")).details).toContain('"error": 16');
  });

  test("can use the page with the keyboard only", async () => {
    await using visited = await visit();
    const { page } = visited;
    const press = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    // The skip link, and after following it, the server choice and the token field.
    await press("Tab", "Enter", "Tab", "Tab");
    await page.keyboard.type(tokens.good);
    await press("Enter");
    // Authorize, Forget, and, in the error's description, itself, its schema, its names and its example.
    await press(...Array.from({ length: 7 }, () => "Tab"));
    await page.keyboard.type("1");
    await press("Enter");
    await page.locator(".outcome", { hasText: "204" }).waitFor();
    expect(plants.has(1n)).toBe(false);
  });
});

test("a user without a token sees the challenge", async () => {
  await using visited = await visit();
  const { details } = await sendDelete(visited.page, "1");
  expect(details).toContain('"message": "a bearer token is required"');
  expect(details).toContain('www-authenticate: Bearer realm="plantstore"');
  expect(plants.has(1n)).toBe(true);
});

test.each(["", "007", "1e3", "1.0", "abc"])('the page does not send the invalid id "%s"', async (id) => {
  await using visited = await visit();
  const { page, requests } = visited;
  await authorize(page, tokens.good);
  await page.getByLabel(/^id/).fill(id);
  await page.getByRole("button", { name: "Send DELETE" }).click();
  expect(await page.getByLabel(/^id/).evaluate((input: HTMLInputElement) => input.validity.valid)).toBe(false);
  expect(requests.filter((url) => url.includes("/plants/"))).toEqual([]);
});

test("the page removes the previous response when an input is invalid", async () => {
  await using visited = await visit();
  const { page } = visited;
  await sendDelete(page, "1");
  await page.getByLabel(/^id/).fill("007");
  await page.getByRole("button", { name: "Send DELETE" }).click();
  expect([await page.locator(".outcome").innerText(), await page.locator(".details").innerText()]).toEqual(["", ""]);
});

test("the button Authorize shows a message when no token was entered", async () => {
  await using visited = await visit();
  await visited.page.getByText("No token yet.").waitFor();
  await authorize(visited.page, " ");
  await visited.page.getByText("No token entered.").waitFor();
});

test("a selected server receives only the token entered for it", async () => {
  const received: (string | null)[] = [];
  const onRequest = ({ authorization, procedure }: AdmitRequest): void => {
    if (procedure !== undefined) received.push(authorization);
  };
  await using other = await startPlantServer({ corsOrigins: "*", onRequest });
  const otherUrl = `http://127.0.0.1:${other.address.port}`;
  await using own = await startPlantServer({ docs: "open", publicUrl: new URL(otherUrl) });
  await using visited = await visit({}, `http://127.0.0.1:${own.address.port}`);
  const { page } = visited;
  await authorize(page, tokens.good);
  await page.getByLabel("Server", { exact: true }).selectOption(otherUrl);
  await page.getByText("No token yet.").waitFor();
  expect((await sendDelete(page, "1")).outcome).toMatch(/^400\s+UNAUTHENTICATED/);
  await authorize(page, tokens.narrow);
  expect((await sendDelete(page, "1")).outcome).toMatch(/^400\s+PERMISSION_DENIED/);
  expect(received).toEqual([null, `Bearer ${tokens.narrow}`]);
  expect(await page.locator(".command").innerText()).toContain(`'${otherUrl}/plants/1'`);
});

test("a server gets no token entered for another path of its origin", async () => {
  await using visited = await visit();
  const { page } = visited;
  await page.route("**/openapi.json", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), servers: [{ url: "/other" }] } });
  });
  await page.reload();
  await authorize(page, tokens.good);
  await page.getByText(`is sent with every request to ${baseUrl} `).waitFor();
  await page.getByLabel("Server", { exact: true }).selectOption(new URL("/other", baseUrl).href);
  await page.getByText("No token yet.").waitFor();
});

test("the button Forget removes the token of the selected server", async () => {
  await using other = await startPlantServer({ corsOrigins: "*" });
  const otherUrl = `http://127.0.0.1:${other.address.port}`;
  await using own = await startPlantServer({ docs: "open", publicUrl: new URL(otherUrl) });
  await using visited = await visit({}, `http://127.0.0.1:${own.address.port}`);
  const { page } = visited;
  await page.getByLabel("Server", { exact: true }).selectOption(otherUrl);
  await authorize(page, tokens.narrow);
  await page.getByRole("button", { name: "Forget" }).click();
  expect((await sendDelete(page, "1")).outcome).toMatch(/^400\s+UNAUTHENTICATED/);
});

test("the shell command has the URL of the selected server", async () => {
  await using visited = await visit();
  await visited.page.getByLabel("Server", { exact: true }).selectOption("https://plants.example/garden");
  expect(await visited.page.locator(".command").innerText()).toContain("'https://plants.example/garden/plants/{id}'");
});

test("the shell command contains the form's inputs, but not the token", async () => {
  await using visited = await visit();
  const { page } = visited;
  await authorize(page, tokens.good);
  await page.getByLabel(/^id/).fill("-7");
  const want = `curl -i \\\n  -X DELETE \\\n  -H "Authorization: Bearer $TOKEN" \\\n  '${baseUrl}/plants/-7'`;
  expect(await page.locator(".command").innerText()).toBe(want);
});

test("the page loads resources only from the server, without browser errors", async () => {
  await using visited = await visit();
  const { page, requests, complaints } = visited;
  await authorize(page, tokens.good);
  await sendDelete(page, "1");
  expect(requests.filter((url) => !url.startsWith(`${baseUrl}/`))).toEqual([]);
  expect(complaints).toEqual([]);
});

test("the page shows that the server cannot be reached", async () => {
  await using visited = await visit();
  const { page } = visited;
  await page.route("**/plants/*", (route) => route.abort());
  await page.getByLabel(/^id/).fill("1");
  await page.getByRole("button", { name: "Send DELETE" }).click();
  await page.locator(".outcome", { hasText: "Cannot reach the server" }).waitFor();
  expect(await page.locator(".details").innerText()).toBe("");
});

// oxfmt-ignore
const appearances: readonly { readonly name: string; readonly options: BrowserContextOptions }[] = [
  { name: "in light colors on a desktop", options: { colorScheme: "light", viewport: { width: 1200, height: 900 } } },
  { name: "in dark colors on a desktop", options: { colorScheme: "dark", viewport: { width: 1200, height: 900 } } },
  { name: "in light colors on a phone",
    options: { colorScheme: "light", viewport: { width: 320, height: 640 }, isMobile: true } },
  { name: "in dark colors on a phone",
    options: { colorScheme: "dark", viewport: { width: 320, height: 640 }, isMobile: true } },
  { name: "in light forced colors",
    options: { colorScheme: "light", forcedColors: "active", viewport: { width: 1200, height: 900 } } },
];

describe.each(appearances)("the page $name", ({ name, options }) => {
  test("fits the screen, without accessibility violations", async () => {
    await using visited = await visit({ ...options, reducedMotion: "reduce" });
    const { page } = visited;
    await authorize(page, tokens.good);
    await sendDelete(page, "404");
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(overflow).toBe(0);
    const command = page.locator(".command");
    expect(await command.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    const audit = await auditAccess(page);
    expect(audit.violations).toEqual([]);
    const rules = ["color-contrast", "label", "landmark-one-main", "heading-order"];
    expect(audit.passes).toEqual(expect.arrayContaining(rules));
    if (screenshots !== undefined)
      await page.screenshot({ path: join(screenshots, `${name.replaceAll(/\W+/g, "-")}.png`), fullPage: true });
  });

  test("has the background of the browser's color scheme", async () => {
    await using visited = await visit(options);
    const isForced = await visited.page.evaluate(() => matchMedia("(forced-colors: active)").matches);
    expect(isForced).toBe(options.forcedColors === "active");
    const ground = await visited.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red = 0] = (ground.match(/\d+/g) ?? []).map(Number);
    expect(red > 128).toBe(options.colorScheme === "light");
  });
});
