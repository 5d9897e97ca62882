import { spawn } from "node:child_process";
import { text as read } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { within } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";

/** Header fields that are in all responses, and that a page may omit. */
const commonFields = /^(?:date|connection|keep-alive|content-length): .*\n/gim;

const comparable = (response: string): string =>
  response.replaceAll(/^x-request-id: [0-9a-f]{16}-[0-9a-z]+$/gm, "x-request-id: …");

describe("curl in docs/how-to/authentication.md", () => {
  const blocks = blocksRunBy("test/suites/clients/documented-refusal.test.ts");
  test.each(blocks)("line $line prints the documented response", async ({ text }) => {
    const [command = "", ...shown] = text.replace(/^\$ /, "").split("\n");
    await using server = await startPlantServer();
    // With the port of the test's server, and without the progress bar.
    const here = command
      .replace("localhost:8080", `127.0.0.1:${String(server.address.port)}`)
      .replace("curl -i", "curl -s -i");
    const child = spawn("sh", ["-c", here], { env: { ...process.env, REVOKED: tokens.unknown } });
    const output = await within(read(child.stdout), "the end of curl");
    expect(comparable(output.replaceAll("\r", "").replaceAll(commonFields, ""))).toBe(comparable(shown.join("\n")));
  });
});
