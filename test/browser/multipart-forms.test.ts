import { createHash, randomBytes } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGateway, type Gateway, parseHttpRules } from "../../src/gateway/index.ts";
import { FileService, type PutFileRequest } from "../gen/files/v1/files_pb.ts";
import { KitchenSink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { openBrowser } from "./open-browser.ts";

// Forms with files as a browser sends them, to a gateway with multipartForms.

const pageHtml = `<!doctype html>
<form id="upload" action="/put" method="post" enctype="multipart/form-data">
  <input type="hidden" name="_charset_"><input name="name"><input type="file" name="file"><button>Send</button>
</form>
<form id="labels" action="/v1/sinks" method="post" enctype="multipart/form-data">
  <input name='labels[a"%\\ü]'><button>Send</button>
</form>`;

let browser: Browser;
let gateway: Gateway;
let address: string;
const given: PutFileRequest[] = [];

beforeAll(async () => {
  const rule = { selector: "files.v1.FileService.PutFile", post: "/put", body: "file" };
  gateway = createGateway({
    routes: (router) => {
      router.service(FileService, {
        putFile(request) {
          given.push(request);
          return {};
        },
      });
      router.service(KitchenSink, { create: (sink) => ({ sink }) });
    },
    rest: {
      service: () => ({ multipartForms: true, mapsInQuery: true }),
      rules: parseHttpRules(JSON.stringify({ rules: [rule] })),
    },
    endpoints: [
      {
        path: "/form.html",
        open: true,
        answer: () => ({ httpStatus: 200, header: { "content-type": "text/html; charset=utf-8" }, body: pageHtml }),
      },
    ],
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  address = `http://127.0.0.1:${String(port)}`;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
  await gateway.close();
});

function hashOf(bytes: Uint8Array | undefined): string {
  return createHash("sha256")
    .update(bytes ?? "")
    .digest("hex");
}

test.each([
  { name: "a file of a megabyte", file: { name: 'a"ü.png', mimeType: "image/png", buffer: randomBytes(1 << 20) } },
  { name: "an empty file", file: { name: "a.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) } },
  { name: "no file", file: undefined },
])("a form uploads $name", async ({ file }) => {
  const page = await browser.newPage();
  await page.goto(`${address}/form.html`);
  await page.fill("#upload [name=name]", "ein Löwe & mehr");
  if (file !== undefined) await page.setInputFiles("#upload [name=file]", file);
  await page.click("#upload button");
  await page.waitForURL(`${address}/put`);
  expect(await page.innerText("body")).toContain("{}");
  const request = given.pop();
  expect(request?.name).toBe("ein Löwe & mehr");
  expect(request?.file?.contentType).toBe(file?.mimeType);
  expect(hashOf(request?.file?.data)).toBe(hashOf(file?.buffer));
  await page.close();
});

test("a form has names with any characters", async () => {
  const page = await browser.newPage();
  await page.goto(`${address}/form.html`);
  await page.fill("#labels input", "1");
  await page.click("#labels button");
  await page.waitForURL(`${address}/v1/sinks`);
  expect(JSON.parse(await page.innerText("body"))).toEqual({ sink: { labels: { 'a"%\\ü': "1" } } });
  await page.close();
});
