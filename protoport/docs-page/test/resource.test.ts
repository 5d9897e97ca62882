import { readFileSync } from "node:fs";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDocsPage } from "../src/index.ts";
import { resourceEndpoint } from "../src/docs-page.ts";
import { type BoundAddress, createGateway } from "../../gateway/src/index.ts";
import { askEndpoint } from "../../testing/src/gateway/ask-endpoint.ts";
import { exchange, type Field, type HttpResponse } from "@protoport/testing";

const document = JSON.stringify({ openapi: "3.1.0", info: { description: "orders ".repeat(200) } });
let documentsMade = 0;
const endpoints = createDocsPage({ document: () => ((documentsMade += 1), document), open: true });
const gateway = createGateway({ routes: () => {}, endpoints });
let at: BoundAddress;
beforeAll(async () => void (at = await gateway.listen({ host: "127.0.0.1" })));
afterAll(() => gateway.close());
const fieldsOf = ({ header }: HttpResponse): Record<string, string> => Object.fromEntries(header);
const paths = ["/openapi.json", "/openapi.yaml", "/docs", "/docs/page.js", "/docs/page.css", "/docs/icon.svg"];

describe.each(["1.1", "2"] as const)("over HTTP/%s", (version) => {
  const ask = (path: string, header: readonly Field[] = [], httpMethod = "GET"): Promise<HttpResponse> =>
    exchange(at, version, { httpMethod, path, header });

  test.each(paths)("%s has a strong ETag for each content coding", async (path) => {
    const tags: string[] = [];
    for (const coding of ["identity", "gzip", "br"]) {
      const complete = await ask(path, [["accept-encoding", coding]]);
      const { etag = "", vary, "content-type": type } = fieldsOf(complete);
      expect([complete.httpStatus, vary]).toEqual([200, "accept-encoding"]);
      expect(etag).toMatch(/^"[\w-]{22,}"$/);
      tags.push(etag);
      for (const sent of [etag, `W/${etag}`, `"other" ,${etag}, "x"`, "*"]) {
        const again = await ask(path, [
          ["accept-encoding", coding],
          ["if-none-match", sent],
        ]);
        expect([again.httpStatus, again.body.length]).toEqual([304, 0]);
        expect(fieldsOf(again)).toMatchObject({ etag, vary: "accept-encoding", "cache-control": "no-cache" });
        expect(fieldsOf(again)).not.toHaveProperty("content-type", type);
      }
      const other = await ask(path, [
        ["accept-encoding", coding],
        ["if-none-match", '"other", W/"x"'],
      ]);
      expect([other.httpStatus, other.body.length]).toEqual([200, complete.body.length]);
    }
    expect(new Set(tags).size).toBe(3);
  });

  test.each([
    { accepted: "gzip, deflate, br, zstd", coding: "br", sentAs: "in br" },
    { accepted: "gzip", coding: "gzip", sentAs: "in gzip" },
    { accepted: "br;q=0.1, gzip", coding: "gzip", sentAs: "in gzip" },
    { accepted: "identity, br;q=0.5", coding: undefined, sentAs: "without content coding" },
    { accepted: "deflate", coding: undefined, sentAs: "without content coding" },
    { accepted: "br;q=0, gzip;q=0", coding: undefined, sentAs: "without content coding" },
  ])('the script is sent $sentAs for "Accept-Encoding: $accepted"', async ({ accepted, coding }) => {
    const response = await ask("/docs/page.js", [["accept-encoding", accepted]]);
    expect(fieldsOf(response)["content-encoding"]).toBe(coding);
    const decoded =
      coding === "br"
        ? brotliDecompressSync(response.body)
        : coding === "gzip"
          ? gunzipSync(response.body)
          : response.body;
    expect(decoded.toString()).toBe((await ask("/docs/page.js")).body.toString());
    if (coding !== undefined) expect(response.body.length).toBeLessThan(decoded.length / 3);
  });

  test("HEAD has the same header fields as GET", async () => {
    const [get, head] = [await ask("/openapi.json"), await ask("/openapi.json", [], "HEAD")];
    const { date: _date, ...want } = fieldsOf(get);
    expect(fieldsOf(head)).toMatchObject(want);
    expect(head.body.length).toBe(0);
  });
});

test.each([
  { coding: "gzip", documented: /page is (\d+) KB in\s+four requests/ },
  { coding: "br", documented: /\((\d+) with\s+Brotli\)/ },
])("protoport/docs/how-to/openapi.md states the page's $coding size to within 5 %", async ({ coding, documented }) => {
  const parts = paths.filter((path) => path.startsWith("/docs"));
  const header: readonly Field[] = [["accept-encoding", coding]];
  const sent = await Promise.all(parts.map((path) => exchange(at, "2", { httpMethod: "GET", path, header })));
  const bytes = sent.reduce((sum, { body }) => sum + body.length, 0);
  const [, kilobytes] = documented.exec(readFileSync("protoport/docs/how-to/openapi.md", "utf8")) ?? [];
  expect(Math.abs(bytes / 1000 / Number(kilobytes) - 1)).toBeLessThan(0.05);
  expect(parts).toHaveLength(4);
});

test("the document is created once for all requests", () => expect(documentsMade).toBe(1));

test("a resource whose creation failed is created again on the next request", async () => {
  let attempts = 0;
  const endpoint = resourceEndpoint("/a", true, () => {
    attempts += 1;
    if (attempts === 1) throw new Error("not yet");
    return { header: {}, body: "a" };
  });
  await expect(askEndpoint(endpoint)).rejects.toThrow("not yet");
  const [one, same] = await Promise.all([askEndpoint(endpoint), askEndpoint(endpoint)]);
  expect(same.header).toBe(one.header);
  await askEndpoint(endpoint, { "accept-encoding": "br" });
  await askEndpoint(endpoint, { "accept-encoding": "br" });
  expect(attempts).toBe(2);
});
