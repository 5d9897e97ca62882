import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../../src/stores/index.ts";
import { createIssuedCertificate } from "@protoport/testing/http";
import { buildStep, createTempFolder, projectFolder } from "@protoport/testing/process";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";

const page = readFileSync(join(projectFolder, "docs/how-to/clients.md"), "utf8");
const commands = [...page.matchAll(/^(?:curl|grpcurl|buf curl) .*$/gm)].map(([command]) => command);
const path = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);

describe("the shell commands in docs/how-to/clients.md", () => {
  test.each(commands)("%s works against a server", async (documented) => {
    using folder = createTempFolder();
    const authorityFile = folder.file("authority.pem");
    const tls = createIssuedCertificate("localhost");
    writeFileSync(authorityFile, tls.authority);
    const plants = new Set([42n, 43n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants), tls });
    // With the port of the test's server, and otherwise unchanged.
    const command = documented.replaceAll(/plants\.example(:443)?/g, `localhost:${server.address.port}`);
    await buildStep("bash", ["-c", command], {
      environment: {
        PATH: path,
        TOKEN: tokens.good,
        // The variables by which Go and curl trust an authority.
        SSL_CERT_FILE: authorityFile,
        CURL_CA_BUNDLE: authorityFile,
      },
    });
    expect([...plants]).toEqual([43n]);
  });
});
