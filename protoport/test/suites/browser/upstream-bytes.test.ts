import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGateway, type Gateway } from "../../../gateway/src/index.ts";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { createProxy, type ProxyGateway } from "../../../proxy/src/create-proxy.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { FileService } from "../../../testing/src/gen/files/v1/files_pb.ts";
import { openBrowser } from "./open-browser.ts";

// An upstream's bytes have the same origin as /docs, which keeps the token that a person has typed in the session
// storage.

const secret = "the token of a person";
const steal = `document.title = "stolen: " + sessionStorage.getItem("token");`;

const pngText = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const png = Buffer.from(pngText, "base64");

// oxfmt-ignore
const files: Readonly<Record<string, readonly [contentType: string, data: string | Buffer]>> = {
  page: ["text/html", `<title>a page</title><p>text</p><script>${steal}</script>`],
  frame: ["text/html", `<title>a frame</title><iframe src="/docs"></iframe>`],
  script: ["text/javascript", steal],
  drawing: ["image/svg+xml",
    `<svg xmlns="http://www.w3.org/2000/svg"><title>a drawing</title><script>${steal}</script></svg>`],
  xml: ["application/xhtml+xml",
    `<html xmlns="http://www.w3.org/1999/xhtml"><title>xml</title><script>${steal}</script></html>`],
  image: ["image/png", png],
  archive: ["application/zip", "PK"],
};

let browser: Browser;
let upstream: Gateway;
let proxy: ProxyGateway;
let baseUrl: string;

beforeAll(async () => {
  browser = await openBrowser();
  upstream = createGateway({
    routes: (router) =>
      router.service(FileService, {
        getFile: ({ name }, { responseHeader }) => {
          const [contentType = "", data = ""] = files[name] ?? [];
          if (name === "archive") responseHeader.set("content-disposition", 'attachment; filename="a.zip"');
          // The proxy does not forward these header fields.
          responseHeader.set("content-security-policy", "default-src * 'unsafe-inline'");
          responseHeader.set("clear-site-data", '"storage"');
          return { contentType, data: Buffer.from(data) };
        },
      }),
  });
  const { port } = await upstream.listen({ host: "127.0.0.1", port: 0 });
  const document = createOpenApi([FileService], { info: { title: "Files", version: "1" } });
  proxy = await createProxy({
    upstreams: [{ upstream: `http://127.0.0.1:${port}`, descriptors: descriptorSetOf(FileService.file) }],
    endpoints: createDocsPage({ document: () => document, open: true }),
  });
  baseUrl = `http://127.0.0.1:${(await proxy.listen({ host: "127.0.0.1", port: 0 })).port}`;
});

afterAll(async () => {
  await browser.close();
  await proxy.close();
  await upstream.close();
});

async function openDocs(): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${baseUrl}/docs`);
  await page.locator("h1").waitFor();
  await page.evaluate((token) => sessionStorage.setItem("token", token), secret);
  return page;
}

test.each([
  ["HTML page", "page"],
  ["SVG image", "drawing"],
  ["XHTML document", "xml"],
])("the browser shows an upstream's %s without running its script", async (_, name) => {
  const page = await openDocs();
  expect((await page.goto(`${baseUrl}/files/${name}`))?.status()).toBe(200);
  expect(await page.title()).not.toContain("stolen");
  // If a test's script passes the policy, the session storage belongs to another origin.
  await expect(page.evaluate(() => sessionStorage.length)).rejects.toThrow(/sandbox|insecure|denied/i);
  await page.goto(`${baseUrl}/docs`);
  expect(await page.evaluate(() => sessionStorage.getItem("token"))).toBe(secret);
  await page.close();
});

test("an upstream's page cannot read /docs in a frame", async () => {
  const page = await openDocs();
  await page.goto(`${baseUrl}/files/frame`);
  expect(await page.evaluate(() => frames[0]?.length === undefined)).toBe(false);
  await expect(page.evaluate(() => frames[0]?.document.title)).rejects.toThrow(/origin/i);
  await page.close();
});

test("an upstream's script does not run in /docs", async () => {
  const page = await openDocs();
  const isLoaded = await page.evaluate(
    (src) =>
      new Promise((resolve) => {
        const script = document.createElement("script");
        Object.assign(script, { src, onload: () => resolve(true), onerror: () => resolve(false) });
        document.head.append(script);
      }),
    "/files/script",
  );
  expect(isLoaded).toBe(false);
  expect(await page.title()).not.toContain("stolen");
  await page.close();
});

test("the browser shows an upstream's images and downloads its other files", async () => {
  const page = await openDocs();
  const width = await page.evaluate(async (src) => {
    const image = new Image();
    image.src = src;
    await image.decode();
    return image.naturalWidth;
  }, "/files/image");
  expect(width).toBe(1);
  const download = page.waitForEvent("download");
  await page.evaluate((href) => location.assign(href), "/files/archive");
  expect((await download).suggestedFilename()).toBe("a.zip");
  await page.close();
});
