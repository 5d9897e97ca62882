import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import type { ClientProgram } from "../support/clients/client-program.ts";
import { runDocumented } from "../support/clients/documented-client.ts";

const page = readFileSync(join(projectFolder, "docs/clients.md"), "utf8");
const commands = [...page.matchAll(/^(?:curl|grpcurl|buf curl) .*$/gm)].map(([command]) => command);
const path = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);

describe("docs/clients.md, shell", () => {
  test.each(commands)("%s", async (documented) => {
    // By the port of the test's server; the rest is run as it is shown.
    const command = documented.replaceAll(/plants\.example(:443)?/g, "$AUTHORITY");
    const program: ClientProgram = { command: ["bash", "-c", command], environment: { PATH: path } };
    expect(await runDocumented(program)).toEqual([43n]);
  });
});
