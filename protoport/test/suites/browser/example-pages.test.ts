import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startExample } from "../../../testing/src/process/example-server.ts";
import { exchangeHttp1, shared } from "@protoport/testing";
import { openBrowser } from "./open-browser.ts";

// The pages in protoport/examples/streams.

const server = shared(() => startExample("streams/main.ts"));
const browser = shared(() => openBrowser());
let page: Page;

async function open(path: string): Promise<void> {
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${String(server.address.port)}${path}`);
}

const outcome = async (): Promise<string> => await page.locator("p:not(:text-is('loading'))").innerText();

test("the page shows readings until their stream ends", async () => {
  await open("/readings.html");
  expect(await outcome()).toBe("complete");
  expect(await page.locator("li").allInnerTexts()).toEqual(Array.from({ length: 5 }, () => "21 °C"));
});

test("the page reports a missing photo", async () => {
  await open("/photo.html");
  expect(await outcome()).toBe("photo not found");
});

test("the page downloads a photo in chunks and shows the progress", async () => {
  const body = randomBytes(5_000_000);
  const put = { httpMethod: "PUT", path: "/photos/palm", header: [], body };
  expect((await exchangeHttp1(server.address, put)).httpStatus).toBe(201);
  page = await browser.newPage();
  // The progress bar's values.
  await page.addInitScript(() => {
    const bars: number[] = [];
    Object.assign(window, { bars });
    new MutationObserver(() => {
      const bar = document.querySelector("progress");
      if (bar !== null && bar.max > 1) bars.push(bar.value / bar.max);
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  await page.goto(`http://127.0.0.1:${String(server.address.port)}/photo.html`);
  expect(await outcome()).toBe("5000000 bytes");
  const bars = await page.evaluate<readonly number[]>("bars");
  expect([bars.some((value) => value > 0 && value < 1), bars.at(-1)]).toEqual([true, 1]);
});
