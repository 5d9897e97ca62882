import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { createDocsPage } from "../../../docs-page/src/index.ts";
import { shared } from "@protoport/testing";
import { auditAccess } from "./audit-access.ts";
import { openBrowser, startGateway } from "./open-browser.ts";

// Tests how the page renders CommonMark, text that only resembles CommonMark, and long words.

const word = "w".repeat(300);
// oxfmt-ignore
const rows: readonly { readonly name: string; readonly text: string; readonly html: string }[] = [
  { name: "paragraphs", text: "one\ntwo\n\nthree", html: "<p>one\ntwo</p><p>three</p>" },
  {
    name: "emphasis and code",
    text: "*a* **b** `c<d>` ``e`f`` _g_h_ `&lt;`",
    html:
      "<p><em>a</em> <strong>b</strong> <code>c&lt;d&gt;</code> <code>e`f</code> <em>g_h</em> " +
      "<code>&amp;lt;</code></p>",
  },
  { name: "inline, reference, bare, bracketed and mail links",
    text: "[a *b*](https://a.example/x?y=1&amp;z) <https://b.example> https://c.example/d_e. [f] <g@h.example>\n\n[f]: http://f.example",
    html:
      '<p><a href="https://a.example/x?y=1&amp;z" rel="noreferrer">a <em>b</em></a> ' +
      '<a href="https://b.example" rel="noreferrer">https://b.example</a> ' +
      '<a href="https://c.example/d_e" rel="noreferrer">https://c.example/d_e</a>. ' +
      '<a href="http://f.example" rel="noreferrer">f</a> <a href="mailto:g@h.example" rel="noreferrer">g@h.example</a></p>' },
  { name: "references to schemas and operations",
    text: "[Shelf][library.v1.Shelf] [theme][library.v1.Shelf.theme] [get][library.v1.Library.GetShelf] [Status][google.rpc.Status] [Book][other.v1.Shelf]",
    html:
      '<p><a href="#/schemas/Shelf" rel="noreferrer">Shelf</a> <a href="#/schemas/Shelf" rel="noreferrer">theme</a> <a href="#/operations/getShelf" rel="noreferrer">get</a> ' +
      '<a href="#/schemas/google.rpc.Status" rel="noreferrer">Status</a> Book</p>' },
  { name: "nested lists, and a numbered list that starts at 3", text: "- a\n  - b\n- `c`\n\n3. d\n4. e",
    html: '<ul><li>a<ul><li>b</li></ul></li><li><code>c</code></li></ul><ol start="3"><li>d</li><li>e</li></ol>' },
  { name: "a list with blank lines between its items", text: "- a\n\n- b",
    html: "<ul><li><p>a</p></li><li><p>b</p></li></ul>" },
  { name: "headings as bold paragraphs", text: "# a\n\nb\n---",
    html: "<p><strong>a</strong></p><p><strong>b</strong></p>" },
  { name: "block quotes, horizontal rules and line breaks", text: "> a\n\n---\n\nb  \nc",
    html: "<blockquote><p>a</p></blockquote><hr><p>b<br>c</p>" },
  { name: "fenced and indented code blocks", text: '```json\n{"a": "<b>"}\n```\n\n    c\n    &amp;',
    html: '<pre class="terminal" tabindex="0">{"a": "&lt;b&gt;"}</pre><pre class="terminal" tabindex="0">c\n&amp;amp;</pre>' },
  { name: "tables", text: "|a|b|\n|-|-|\n|`c`|d|", html:
      '<div class="wide" tabindex="0"><table><tr><th>a</th><th>b</th></tr>' +
      "<tr><td><code>c</code></td><td>d</td></tr></table></div>" },
  { name: "escapes and entities", text: "\\*a\\* &lt;b&gt; &amp;amp; &#42; &#x2a; &#0; &#9999999; &nope;",
    html: "<p>*a* &lt;b&gt; &amp;amp; * * \ufffd \ufffd &amp;nope;</p>" },
  { name: "an image as a link", text: "![a](https://a.example/b.png)",
    html: '<p><a href="https://a.example/b.png" rel="noreferrer">a</a></p>' },
  { name: "HTML as escaped text", text: "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> a <b>c</b>",
    html: "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p><p>&lt;img src=x onerror=alert(1)&gt; a &lt;b&gt;c&lt;/b&gt;</p>" },
  { name: "links within the server and the page, but not relative links",
    text: "[a](/b) [c](#/schemas/Shelf) [d](e) [f](#g)",
    html: '<p><a href="/b" rel="noreferrer">a</a> <a href="#/schemas/Shelf" rel="noreferrer">c</a> d f</p>' },
  { name: "deletions, quotes, and entities in links",
    text: "~~a~~ &quot;&nbsp;&#X2A;&#1114111; [b](https://a.example/?c&#61;d)",
    html: '<p><del>a</del> "&nbsp;*\u{10ffff} <a href="https://a.example/?c=d" rel="noreferrer">b</a></p>' },
  ...[
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "&#106;avascript:alert(1)",
    "java%0ascript:alert(1)",
    "<java\tscript:alert(1)>",
    "<\u{1}javascript:alert(1)>",
    "vbscript:a",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "blob:https://a.example/b",
  ].map((href) => ({ name: `the forbidden link ${JSON.stringify(href)}`, text: `[a](${href})`, html: "<p>a</p>" })),
  { name: "a link with quotes in its URL", text: '[a](https://a.example/"onmouseover="alert(1))',
    html: '<p><a href="https://a.example/&quot;onmouseover=&quot;alert(1)" rel="noreferrer">a</a></p>' },
];

const field = { type: "string", description: word, enum: [word], "x-value-names": { 1: word, [word]: word } };
const shelf = { type: "object", properties: { [word]: field } };
// oxfmt-ignore
const description = { openapi: "3.1.0",
  info: { title: word, version: word,
    description: `${word} [${word}](https://a.example/${word}) \`${word}\`\n\n|${word}|b|\n|-|-|\n|c|${word}|` },
  servers: [{ url: "/", description: word }, { url: `https://${"a.".repeat(60)}example/${word}` }],
  security: [{ bearer: [] }],
  tags: [...rows.map(({ text }, at) => ({ name: `row ${String(at)}`, description: text })),
    { name: word, description: word }],
  paths: { ...Object.fromEntries(
      rows.map((_, at) => [
        `/rows/${String(at)}`,
        { get: { tags: [`row ${String(at)}`], responses: { 200: { description: "a" } } } },
      ]),
    ), "/shelves": { get: { operationId: "getShelf",
        tags: [word],
        "x-rpc": { procedure: "/library.v1.Library/GetShelf", path: "/shelves" },
        responses: {},
      },
    }, [`/${word}/{${word}}`]: { post: { operationId: "long",
        summary: word,
        tags: [word],
        deprecated: true,
        "x-rpc": { procedure: `/${word}.v1.${word}/${word}`, path: `/${word}/{${word}}`, body: "*" },
        parameters: [
          { name: word, in: "path", required: true, description: word, schema: { type: "string", enum: [word] } },
          { name: `${word}.b`, in: "query", schema: { type: "integer" } },
        ],
        requestBody: { content: { "application/json": { schema: { $ref: `#/components/schemas/${word}` } } } },
        responses: { 200: { description: word,
            content: { [`application/${word}`]: { schema: { $ref: `#/components/schemas/${word}` } } },
          },
        },
      },
    } },
  components: { schemas: { Shelf: { type: "object" }, "google.rpc.Status": { type: "object" }, [word]: shelf } },
};

const browser = shared(() => openBrowser());
const endpoints = createDocsPage({ document: () => JSON.stringify(description), open: true });
const gateway = shared(() => startGateway({ routes: () => {}, endpoints }));
let page: Page;

beforeAll(async () => void (page = await browser.newPage()));

async function open(view: string): Promise<void> {
  await page.goto(`${gateway.baseUrl}/docs#/${view}`);
  await page.reload();
  await page.locator("#view h1").waitFor();
}

test.each(rows.map((row, at) => ({ ...row, at })))(
  "the page renders $name as the expected HTML",
  async ({ html, at }) => {
    if (at === 0) await open("");
    const group = page.locator(".group", {
      has: page.getByRole("heading", { name: `row ${String(at)}`, exact: true }),
    });
    const shown = await group.evaluate(({ children }) =>
      [...children]
        .slice(1, -1)
        .map((each) => each.outerHTML)
        .join(""),
    );
    expect(shown).toBe(html);
  },
);

describe.each(["", "operations/long", `schemas/${word}`])("the view %j with words of 300 letters", (view) => {
  test.each([320, 1200])("fits into %i pixels without accessibility violations", async (width) => {
    await page.setViewportSize({ width, height: 640 });
    await open(view);
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    const wide = await page.evaluate(() => {
      const { clientWidth } = document.documentElement;
      return [...document.querySelectorAll("main *:not(.wide *)")]
        .filter((each) => each.getBoundingClientRect().right > clientWidth)
        .map(({ outerHTML }) => outerHTML.slice(0, 80));
    });
    expect(wide).toEqual([]);
    expect(await page.locator("html").evaluate((root) => root.scrollWidth - root.clientWidth)).toBe(0);
    expect((await auditAccess(page)).violations).toEqual([]);
  });
});

test("the printed page expands collapsed sections and hides controls", async () => {
  await page.setViewportSize({ width: 1200, height: 640 });
  await open("operations/long");
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const folded = page.locator("#view .reference details:not([open])");
  const before = await folded.count();
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  expect([before > 0, await folded.count()]).toEqual([true, 0]);
  for (const part of ["#sidebar", "#connection", ".try-it"]) expect(await page.locator(part).isVisible()).toBe(false);
  expect(await page.locator(".reference").isVisible()).toBe(true);
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe("rgb(252, 253, 251)");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  expect(await folded.count()).toBe(before);
  // Another print does not close a section that the user has opened.
  await folded.first().locator("summary").first().click();
  const opened = await folded.count();
  await page.evaluate(() => ["beforeprint", "afterprint"].map((type) => dispatchEvent(new Event(type))));
  expect([opened, await folded.count()]).toEqual([before - 1, before - 1]);
  await page.emulateMedia({ media: null, colorScheme: null });
});

test("the page requests five resources", async () => {
  const context = await browser.newContext();
  const own = await context.newPage();
  const responses: string[] = [];
  own.on("response", (response) =>
    responses.push(`${response.url().slice(gateway.baseUrl.length)} ${String(response.status())}`),
  );
  await own.goto(`${gateway.baseUrl}/docs`);
  await own.locator("#view h1").waitFor();
  const parts = ["/docs", "/docs/icon.svg", "/docs/page.css", "/docs/page.js", "/openapi.json"];
  expect([...new Set(responses)].toSorted()).toEqual(parts.map((path) => `${path} 200`));
  await context.close();
});
