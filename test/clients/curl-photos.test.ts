import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ExampleServer, startExample } from "../support/docs/example-server.ts";
import { runProgram } from "../support/process/child-program.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

// The photos of examples/streams, uploaded and downloaded by curl.

const folder = createTempFolder();
const [original, copy, tag] = [folder.file("original"), folder.file("copy"), folder.file("tag")];
const photo = randomBytes(5_000_000);
let server: ExampleServer;

beforeAll(async () => {
  writeFileSync(original, photo);
  server = await startExample("streams/main.ts");
});
afterAll(async () => {
  await server.stop();
  folder[Symbol.dispose]();
});

describe.each(["--http1.1", "--http2-prior-knowledge"])("curl %s", (version) => {
  const curl = async (...args: readonly string[]): Promise<string> => {
    const url = `http://127.0.0.1:${String(server.address.port)}/photos/palm`;
    const shown = ["-sS", "-w", "%{http_code} %{size_download}", version];
    return (await runProgram("curl", [...shown, ...args, url])).stdout;
  };

  test.each([
    { how: "whose length it tells", upload: ["-T", original] },
    { how: "whose length it does not know", upload: ["-T", original, "-H", "transfer-encoding: chunked"] },
  ])("uploads a file $how, and downloads it", async ({ upload }) => {
    expect(await curl(...upload)).toMatch(/^\{"name":"palm","bytes":"5000000"\}201 /);
    expect(await curl("-o", copy)).toBe("200 5000000");
    expect(readFileSync(copy).equals(photo)).toBe(true);
  });

  test("continues a download that was cut off", async () => {
    expect(await curl("-o", copy)).toBe("200 5000000");
    truncateSync(copy, 1_000_000);
    expect(await curl("-o", copy, "-C", "-")).toBe("206 4000000");
    expect(readFileSync(copy).equals(photo)).toBe(true);
  });

  test("downloads only what has changed", async () => {
    rmSync(tag, { force: true });
    expect(await curl("-o", copy, "--etag-save", tag)).toBe("200 5000000");
    expect(await curl("-o", copy, "--etag-compare", tag)).toBe("304 0");
    expect(await curl("-T", original)).toMatch(/201 /);
    expect(await curl("-o", copy, "--etag-compare", tag)).toBe("200 5000000");
  });
});
