import { describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { type ProgramResult, runProgram } from "@protoport/testing/process";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";
import { openSituationStore, situations } from "../../support/plants/situation-store.ts";

// Cases that the documented commands do not cover: both HTTP versions, a deleted plant, and a curl timeout.

// Status, content type, challenge and body, separated by bars. Curl writes an empty string for a missing field.
const shown = "%{http_code}|%{http_version}|%header{content-type}|%header{www-authenticate}|";
/** curl's exit code after a timeout. */
const operationTimedOut = 28;

const versions = [
  { flag: "--http1.1", httpVersion: "1.1" },
  { flag: "--http2-prior-knowledge", httpVersion: "2" },
];

describe.each(versions)("curl over HTTP/$httpVersion", ({ flag, httpVersion }) => {
  const server = shared(() => startPlantServer({ store: openSituationStore(new Set([42n])) }));

  const curl = (url: string, args: readonly string[]): Promise<ProgramResult> =>
    runProgram("curl", ["-sS", flag, "-X", "DELETE", "-w", `\n${shown}`, ...args, url]);

  async function deletePlant(id: bigint, args: readonly string[]): Promise<string> {
    const { stdout } = await curl(`http://127.0.0.1:${server.address.port}/plants/${id}`, args);
    return stdout;
  }

  const refused = `400|${httpVersion}|application/json|`;

  test("deletes a plant once", async () => {
    expect(await deletePlant(42n, bearer(tokens.good))).toBe(`\n204|${httpVersion}|||`);
    expect(await deletePlant(42n, bearer(tokens.good))).toBe(`{"error":5,"message":"plant 42 not found"}\n${refused}|`);
  });

  test("times out when the server does not respond in time", async () => {
    const url = `http://127.0.0.1:${server.address.port}/plants/${situations.slow}`;
    const { exitCode } = await curl(url, ["--max-time", "0.4", ...bearer(tokens.good)]);
    expect(exitCode).toBe(operationTimedOut);
  });
});

const bearer = (token: string): string[] => ["-H", `Authorization: Bearer ${token}`];
