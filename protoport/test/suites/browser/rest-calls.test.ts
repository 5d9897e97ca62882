import { Code, ConnectError } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { pageBlocks } from "../../support/docs/page-blocks.ts";
import { shared, startGreenhouse, startKitchenSink } from "@protoport/testing";
import { startCatalog } from "../../../testing/src/gateway/catalog.ts";
import { startModuleServer } from "./module-server.ts";
import { openBrowser } from "./open-browser.ts";

// REST calls in a page: server streams with the guide's code, and the REST transport without a bundler.

const blocks = pageBlocks.filter(
  ({ page, language }) => page === "protoport/docs/reference/streams.md" && language === "js",
);
const surroundings =
  "const seen = []; const show = (m) => seen.push(m.sensor); const showError = (e) => seen.push(e.message);";

const browser = shared(() => openBrowser());
let page: Page;
let opened = 0;

const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
const greenhouse = shared(() =>
  startGreenhouse(
    {
      async *watchReadings({ sensor }) {
        opened += 1;
        for (const name of ["a", "b\n", "ü"]) {
          yield { sensor: name };
          // Waits, so that each message is sent in a separate chunk.
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        if (sensor === "broken") throw new ConnectError("wind", Code.Unavailable);
      },
    },
    {
      rest: { rules: [{ selector, pattern: { case: "get", value: "/v1/{sensor}" } }] },
      endpoints: [
        {
          path: "/",
          open: true,
          handle: () => ({ httpStatus: 200, header: { "content-type": "text/html" }, body: "<!doctype html>" }),
        },
      ],
    },
  ),
);
beforeAll(async () => {
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${String(greenhouse.address.port)}/`);
});

/** Returns the guide's code block with this start, which requests a test case's path. */
function codeOf(start: string, path: string): string {
  const block = blocks.find(({ text }) => text.startsWith(start));
  if (block === undefined) throw new Error(`the guide has no block that starts with ${start}`);
  return block.text.replace("/v1/readings", path);
}

test.each([
  { path: "/v1/readings", want: ["a", "b\n", "ü"] },
  { path: "/v1/broken", want: ["a", "b\n", "ü", "Error: wind"] },
])("the documented JSON Lines program reads the stream $path completely", async ({ path, want }) => {
  const code = codeOf("const response = await fetch", path);
  const program = `(async () => { ${surroundings} try { ${code} } catch (e) { seen.push(String(e)); } return seen; })()`;
  expect(await page.evaluate(program)).toEqual(want);
});

test.each([
  { path: "/v1/readings", want: ["a", "b\n", "ü"] },
  { path: "/v1/broken", want: ["a", "b\n", "ü", "wind"] },
])(
  "the documented program for server-sent events reads the stream $path completely in one request",
  async ({ path, want }) => {
    opened = 0;
    const code = codeOf("const events = new EventSource", path);
    const closed = "await new Promise((done) => setInterval(() => events.readyState === 2 && done(), 10));";
    // The pause is longer than a browser waits before it reconnects.
    const quiet = "await new Promise((done) => setTimeout(done, 3500));";
    expect(await page.evaluate(`(async () => { ${surroundings} ${code} ${closed} ${quiet} return seen; })()`)).toEqual(
      want,
    );
    expect(opened).toBe(1);
  },
);

const site = shared(() => startModuleServer());

/** The page's program. Uses a handle, because the compiler would resolve an import here for node. */
async function openModule() {
  await page.goto(`${site.origin}/`);
  return await page.evaluateHandle<typeof import("../../../testing/src/gateway/rest-page.ts")>(
    'import("/protoport/testing/src/gateway/rest-page.ts")',
  );
}

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
