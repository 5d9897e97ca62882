import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { startCatalog } from "../../../testing/src/gateway/catalog.ts";
import { shared, startKitchenSink } from "@protoport/testing";
import { startModuleServer } from "./module-server.ts";
import { openBrowser } from "./open-browser.ts";

// The REST transport in a page, without a bundler.

const browser = shared(() => openBrowser());
const site = shared(() => startModuleServer());
let page: Page;

beforeAll(async () => {
  page = await browser.newPage();
  await page.goto(`${site.origin}/`);
});

/** The page's program. Uses a handle, because the compiler would resolve an import here for node. */
const openModule = async () =>
  await page.evaluateHandle<typeof import("../../../testing/src/gateway/rest-page.ts")>(
    'import("/protoport/testing/src/gateway/rest-page.ts")',
  );

test("a page from another origin sends a call with a timeout", async () => {
  await using gateway = await startKitchenSink({ cors: { origins: [site.origin] } });
  const module = await openModule();
  const baseUrl = `http://127.0.0.1:${gateway.address.port}`;
  expect(await module.evaluate((functions, url) => functions.replaceSink(url), baseUrl)).toBe(
    "Replace 9007199254740993 tree",
  );
  expect(await module.evaluate((functions, url) => functions.askForDots(url), baseUrl)).toBe(
    '[invalid_argument] cannot send this message to kitchensink.v1.KitchenSink.Any: f_string: must not contain the path segment ".."',
  );
});

test("the REST transport delivers a stream message by message", async () => {
  await using gateway = await startCatalog({ cors: { origins: [site.origin] } });
  const module = await openModule();
  const baseUrl = `http://127.0.0.1:${gateway.address.port}`;
  expect(await module.evaluate((functions, url) => functions.watchTitles(url), baseUrl)).toEqual(["one", "two"]);
});
