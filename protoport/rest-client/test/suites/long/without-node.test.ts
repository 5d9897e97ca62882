import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createContext, runInContext } from "node:vm";
import { build } from "rolldown";
import { expect, test } from "vitest";
import { projectFolder, shared, startKitchenSink } from "@protoport/testing";
import { respondWith, startRestServer } from "../../../../testing/src/gateway/rest-server.ts";

// Tests the transport without node, and without code generation at run time.

const gateway = shared(() => startKitchenSink());
/** Maximum size of the code that a program downloads for the transport, without peer dependencies. */
const maxGzippedBytes = 28 * 1024;

test("the minified, gzipped client without peer dependencies is below 28 KB", async () => {
  const { output } = await build({
    input: join(projectFolder, "protoport/rest-client/src/index.ts"),
    platform: "browser",
    external: /^@(?:bufbuild|connectrpc)\//,
    output: { minify: true },
    write: false,
  });
  expect(output[0].imports.filter((name) => !/^@(?:bufbuild\/protobuf|connectrpc\/connect)/.test(name))).toEqual([]);
  expect(output[0].code).not.toMatch(/new Function|\beval\b|"use strict";\\nreturn/);
  expect(gzipSync(output[0].code).byteLength).toBeLessThan(maxGzippedBytes);
});

/** Bundles a page's code, and runs it with only web globals and without code generation. */
async function openPage(more: object): Promise<typeof import("../../../../testing/src/gateway/rest-page.ts")> {
  const input = join(projectFolder, "protoport/testing/src/gateway/rest-page.ts");
  const format = { format: "iife", name: "page" } as const;
  const { output } = await build({ input, platform: "browser", output: format, write: false });
  // oxfmt-ignore
  const web = { AbortController, AbortSignal, Headers, ReadableStream, Request, TextDecoder, TextEncoder, URL,
    Uint8Array, clearTimeout, console, fetch, setTimeout };
  const context = createContext(
    { ...web, ...more, recordEnteredBlock: Reflect.get(globalThis, "recordEnteredBlock") },
    { codeGeneration: { strings: false, wasm: false } },
  );
  runInContext(output[0].code, context);
  return runInContext("page", context);
}

test("the client runs with only web globals and without code generation", async () => {
  const page = await openPage({});
  expect(await page.replaceSink(`http://127.0.0.1:${gateway.address.port}`)).toBe("Replace 9007199254740993 tree");
});

test("a web page sends no grpc-timeout field to another origin", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, { rpc: "x", length: "7" }));
  const { baseUrl, seen } = server;
  const location = { href: "http://page.example/a", origin: "http://page.example" };
  const elsewhere = await openPage({ document: {}, location });
  await elsewhere.replaceSink(baseUrl);
  expect(await elsewhere.uploadPieces(baseUrl, 3, 4)).toBe("7");
  expect(await elsewhere.uploadPieces(baseUrl, 20, 1024 * 1024)).toBe(
    "[resource_exhausted] a browser cannot send a stream larger than 16777216 bytes",
  );
  await (await openPage({ document: {}, location: { href: `${baseUrl}/a`, origin: baseUrl } })).replaceSink("/api");
  expect(seen.map(({ line, header }) => [line, header["grpc-timeout"], header["content-length"]])).toEqual([
    ["PUT /v1/sinks/9007199254740993", undefined, "18"],
    ["PUT /uploads/n", undefined, "12"],
    ["PUT /api/v1/sinks/9007199254740993", "5000m", "18"],
  ]);
});
