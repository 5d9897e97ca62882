import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Script } from "node:vm";
import { expect, test } from "vitest";
import type { EndpointResponse } from "../../gateway/src/index.ts";
import { createDocsPage } from "../src/docs-page.ts";
import { askEndpoint } from "../../testing/src/gateway/ask-endpoint.ts";

const document = '{"openapi":"3.1.0"}';
const open = createDocsPage({ document: () => document, open: true });
const answers = new Map(
  await Promise.all(open.map(async (endpoint) => [endpoint.path, await askEndpoint(endpoint)] as const)),
);
const html = textOf("/docs");

function answerOf(path: string): EndpointResponse {
  const answer = answers.get(path);
  if (answer === undefined) throw new Error(`nothing is at ${path}`);
  return answer;
}

function textOf(path: string): string {
  return new TextDecoder().decode(Buffer.from(answerOf(path).body));
}

test("/openapi.json contains the document unchanged", () => {
  expect(answerOf("/openapi.json")).toMatchObject({ httpStatus: 200, header: { "content-type": "application/json" } });
  expect(textOf("/openapi.json")).toBe(document);
});

test("/openapi.yaml contains the document as YAML", () => {
  expect(answerOf("/openapi.yaml")).toMatchObject({ httpStatus: 200, header: { "content-type": "application/yaml" } });
  expect(textOf("/openapi.yaml")).toBe('openapi: "3.1.0"\n');
});

test.each([
  { path: "/docs", type: "text/html; charset=utf-8" },
  { path: "/docs/page.css", type: "text/css; charset=utf-8" },
  { path: "/docs/icon.svg", type: "image/svg+xml" },
])("$path has the content type $type, so that browsers use it", ({ path, type }) => {
  expect(answerOf(path)).toMatchObject({ httpStatus: 200, header: { "content-type": type } });
});

test("later style sheets override earlier ones, print styles last", () => {
  const parts = ["page.css", "layout.css", "print.css"].map((name) =>
    readFileSync(`protoport/docs-page/src/files/${name}`, "utf8"),
  );
  expect(textOf("/docs/page.css")).toBe(parts.join("\n"));
});

test("the root redirects to the page by a relative path", () => {
  expect(answerOf("/")).toMatchObject({ httpStatus: 302, header: { location: "docs" } });
  expect(open.find(({ path }) => path === "/")).toMatchObject({ open: true, yieldsToRules: true });
});

test("with open: false, all paths require a credential and / is absent", () => {
  const closed = createDocsPage({ document: () => document, open: false });
  expect(closed.map(({ path }) => path)).not.toContain("/");
  expect(new Set(closed.map((endpoint) => endpoint.open))).toEqual(new Set([false]));
});

test.each(open.map(({ path }) => path))("%s has the field Cache-Control: no-cache", (path) => {
  expect(answerOf(path).header?.["cache-control"]).toBe("no-cache");
});

test.each(open.map(({ path }) => path))(
  "%s has security header fields such as X-Content-Type-Options: nosniff",
  (path) => {
    expect(answerOf(path).header).toMatchObject({
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    if (path === "/docs") return;
    expect(answerOf(path).header?.["content-security-policy"]).toBe("default-src 'none'; frame-ancestors 'none'");
  },
);

test("the page's Content-Security-Policy allows only the hash of its script", () => {
  const hash = `sha256-${createHash("sha256").update(textOf("/docs/page.js")).digest("base64")}`;
  expect(html).toContain(`<script type="module" src="docs/page.js" integrity="${hash}"></script>`);
  expect(answerOf("/docs").header?.["content-security-policy"]).toBe(
    `default-src 'none'; script-src '${hash}'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
});

test("the page may send requests only to the document's servers", async () => {
  const servers = [
    "/garden",
    "https://orders.example/api",
    "https://orders.example/b",
    "https://[",
    "http://orders.example",
    "ftp://orders.example",
  ];
  const text = JSON.stringify({ openapi: "3.1.0", servers: servers.map((url) => ({ url })) });
  const page = createDocsPage({ document: () => text, open: true }).find(({ path }) => path === "/docs");
  const { header } = await askEndpoint(page ?? expect.unreachable());
  expect(header?.["content-security-policy"]).toContain(
    "; connect-src 'self' https://orders.example http://orders.example; ",
  );
});

const references = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, target = ""]) => target);

test.each(references)("the page loads %s by a relative URL", (target) => {
  expect(answerOf(`/${target}`).httpStatus).toBe(200);
});

test("the page loads with five requests", () => {
  expect([...answers.keys()].filter((path) => path !== "/" && path !== "/openapi.yaml")).toHaveLength(5);
  expect(references.filter((target) => target.endsWith(".js"))).toEqual(["docs/page.js"]);
  expect(answerOf("/docs/page.js").header?.["content-type"]).toBe("text/javascript; charset=utf-8");
  expect(textOf("/docs/page.js")).not.toMatch(/^(?:import|export)\b|\bimport\(/m);
});

test("the page's script defines each module before its first use", () => {
  const script = textOf("/docs/page.js");
  // The entry module uses top-level await to load the description.
  expect(() => new Script(`(async () => {${script}\n})`)).not.toThrow();
  const used = [...script.matchAll(/^const \{[^}]*\} = ([\w$]+);$|^const ([\w$]+) = \(\(\) => \{$/gm)];
  const created = new Set(["marked"]);
  for (const [, module, maker] of used) {
    if (maker !== undefined) created.add(maker);
    else expect(created).toContain(module);
  }
  expect(created.size).toBeGreaterThan(3);
});

test("the page has no inline scripts, styles or handlers", () =>
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:/));
