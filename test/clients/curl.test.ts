import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ProgramResult, runProgram } from "../support/process/child-program.ts";
import { tokens } from "../support/server/plant-server.ts";
import { type ServerPair, startServerPair } from "../support/server/server-pair.ts";
import { situations } from "../support/plants/situation-store.ts";

// Status, content type, challenge and body, parted by bars; curl writes an absent field as nothing.
const shown = "%{http_code}|%{http_version}|%header{content-type}|%header{www-authenticate}|";

/** What curl ends with when its time is up. */
const operationTimedOut = 28;

const invalidToken = 'Bearer realm="plantstore", error="invalid_token", error_description="the token is not valid"';

const longId = 2n ** 53n + 1n;

const versions = [
  { flag: "--http1.1", httpVersion: "1.1" },
  { flag: "--http2-prior-knowledge", httpVersion: "2" },
];

describe.each(versions)("curl over HTTP/$httpVersion", ({ flag, httpVersion }) => {
  let servers: ServerPair;

  beforeAll(async () => {
    servers = await startServerPair(new Set([42n, 43n]));
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  function curl(url: string, args: readonly string[]): Promise<ProgramResult> {
    return runProgram("curl", ["-sS", flag, "-X", "DELETE", "-w", `\n${shown}`, ...args, url]);
  }

  async function deletePlant(id: bigint, args: readonly string[]): Promise<string> {
    const { stdout } = await curl(`http://127.0.0.1:${servers.cleartext.address.port}/plants/${id}`, args);
    return stdout;
  }

  const refused = `400|${httpVersion}|application/json|`;

  test("deletes a plant once", async () => {
    expect(await deletePlant(42n, bearer(tokens.good))).toBe(`\n204|${httpVersion}|||`);
    expect(await deletePlant(42n, bearer(tokens.good))).toBe(`{"error":5,"message":"plant 42 not found"}\n${refused}|`);
  });

  test.each([
    {
      what: "no token",
      id: 43n,
      args: [],
      want: `{"error":16,"message":"a bearer token is required"}\n${refused}Bearer realm="plantstore"|`,
    },
    {
      what: "a wrong token",
      id: 43n,
      args: bearer(tokens.unknown),
      want: `{"error":16,"message":"the token is not valid"}\n${refused}${invalidToken}|`,
    },
    {
      what: "an id beyond a double",
      id: longId,
      args: bearer(tokens.good),
      want: `{"error":5,"message":"plant ${longId} not found"}\n${refused}|`,
    },
  ])("is told of $what", async ({ id, args, want }) => {
    expect(await deletePlant(id, args)).toBe(want);
  });

  test("gives up when its time is up", async () => {
    const url = `http://127.0.0.1:${servers.cleartext.address.port}/plants/${situations.slow}`;
    const { exitCode } = await curl(url, ["--max-time", "0.4", ...bearer(tokens.good)]);
    expect(exitCode).toBe(operationTimedOut);
  });

  test("deletes a plant over TLS", async () => {
    const url = `https://localhost:${servers.secure.address.port}/plants/43`;
    // Over TLS the version is agreed on by ALPN.
    const version = httpVersion === "2" ? "--http2" : "--http1.1";
    const { stdout } = await curl(url, [version, "--cacert", servers.authorityFile, ...bearer(tokens.good)]);
    expect(stdout).toBe(`\n204|${httpVersion}|||`);
  });
});

function bearer(token: string): string[] {
  return ["-H", `Authorization: Bearer ${token}`];
}
