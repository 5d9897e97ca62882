import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createContext, runInContext } from "node:vm";
import { build } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startKitchenSink, type TestGateway } from "../../support/gateway/kitchen-sink.ts";
import { projectFolder } from "../../support/process/child-program.ts";

// The transport where nothing of node is, and where no code may be made at run time.

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startKitchenSink();
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

/** What a program downloads for it, without the peers, which it has anyway. */
const gzippedBytesMax = 25 * 1024;

test("it is 25 KB, gzipped, beside the peers", async () => {
  const { output } = await build({
    input: join(projectFolder, "src/gateway/rest-client/index.ts"),
    platform: "browser",
    external: /^@(?:bufbuild|connectrpc)\//,
    output: { minify: true },
    write: false,
  });
  expect(output[0].imports.filter((name) => !/^@(?:bufbuild\/protobuf|connectrpc\/connect)/.test(name))).toEqual([]);
  expect(output[0].code).not.toMatch(/new Function|\beval\b|"use strict";\\nreturn/);
  expect(gzipSync(output[0].code).byteLength).toBeLessThan(gzippedBytesMax);
});

test("it calls with the globals of the web alone, where no code may be made", async () => {
  const { output } = await build({
    input: join(projectFolder, "test/support/gateway/rest-page.ts"),
    platform: "browser",
    output: { format: "iife", name: "page" },
    write: false,
  });
  const web = {
    AbortController,
    AbortSignal,
    Headers,
    ReadableStream,
    Request,
    TextDecoder,
    TextEncoder,
    URL,
    Uint8Array,
    console,
    fetch,
    setTimeout,
    clearTimeout,
  };
  const context = createContext(
    { ...web, plantFaultsEntered: globalThis.plantFaultsEntered },
    { codeGeneration: { strings: false, wasm: false } },
  );
  runInContext(output[0].code, context);
  const page: typeof import("../../support/gateway/rest-page.ts") = runInContext("page", context);
  expect(await page.replaceSink(`http://127.0.0.1:${gateway.address.port}`)).toBe("Replace 9007199254740993 tree");
});
