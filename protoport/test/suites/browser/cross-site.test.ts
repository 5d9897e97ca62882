import { expect, test } from "vitest";
import { shared, startKitchenSink } from "@protoport/testing";
import { openBrowser } from "./open-browser.ts";

// POST requests that pages send without a preflight, with the cookies of the gateway's site.

const browser = shared(() => openBrowser());

interface Row {
  readonly name: string;
  /** The host of the page, and of the gateway that gets the request. */
  readonly hosts: readonly [page: string, gateway: string];
  readonly isOwnPage?: true;
  readonly type?: string;
  readonly isServed: boolean;
}

const rows: readonly Row[] = [
  { name: "its own page", hosts: ["127.0.0.1", "127.0.0.1"], isOwnPage: true, isServed: true },
  { name: "a page on another port", hosts: ["127.0.0.1", "127.0.0.1"], isServed: false },
  { name: "a page of another site", hosts: ["localhost", "127.0.0.1"], isServed: false },
  { name: "a page with a form's type", hosts: ["localhost", "127.0.0.1"], type: "text/plain", isServed: false },
];

test.each(rows)("a POST from $name runs only if the page may call", async ({ hosts, isOwnPage, type, isServed }) => {
  const calls: string[] = [];
  const page = { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "", header: html }) };
  await using gateway = await startKitchenSink({
    endpoints: [page],
    admit: ({ httpMethod, path }) => void (httpMethod === "POST" && calls.push(path)),
  });
  await using other = await startKitchenSink({ endpoints: [page] });
  const [pageHost, gatewayHost] = hosts;
  const opened = await browser.newPage();
  const from = isOwnPage ? gateway : other;
  await opened.goto(`http://${pageHost}:${String(from.address.port)}/page`);
  const init = { url: `http://${gatewayHost}:${String(gateway.address.port)}/v1/sinks`, type: type ?? "" };
  await opened.evaluate(async (request) => {
    const body = new Blob(["{}"], { type: request.type });
    await fetch(request.url, { method: "POST", mode: "no-cors", credentials: "include", body });
  }, init);
  expect(calls).toEqual(isServed ? ["/v1/sinks"] : []);
  await opened.close();
});

const html = { "content-type": "text/html" };
