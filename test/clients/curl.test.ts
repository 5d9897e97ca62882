import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/plants/index.ts";
import { runProgram } from "../support/child-program.ts";
import { startPlantServer, tokens } from "../support/plant-server.ts";

// Status, content type, challenge and body, parted by bars; curl writes an absent field as nothing.
const shown = "%{http_code}|%{http_version}|%header{content-type}|%header{www-authenticate}|";

const versions = [
  { flag: "--http1.1", httpVersion: "1.1" },
  { flag: "--http2-prior-knowledge", httpVersion: "2" },
];

describe("curl", () => {
  test.each(versions)("deletes a plant once, with $flag", async ({ flag, httpVersion }) => {
    await using server = await startPlantServer({ store: openMemoryStore(new Set([42n])) });
    const url = `http://127.0.0.1:${String(server.address.port)}/plants/42`;
    const curl = async (...args: string[]): Promise<string> =>
      (await runProgram("curl", ["-sS", flag, "-X", "DELETE", "-w", `\n${shown}`, ...args, url])).stdout;

    const credential = ["-H", `Authorization: Bearer ${tokens.good}`];
    const challenge = 'Bearer realm="plantstore"';
    expect(await curl()).toBe(
      `{"error":16,"message":"a bearer token is required"}\n400|${httpVersion}|application/json|${challenge}|`,
    );
    expect(await curl(...credential)).toBe(`\n204|${httpVersion}|||`);
    expect(await curl(...credential)).toBe(
      `{"error":5,"message":"plant 42 not found"}\n400|${httpVersion}|application/json||`,
    );
  });
});
