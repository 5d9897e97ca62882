import { once } from "node:events";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { buildLimitMs, buildStep, hasProgram, startGreenhouse, type TestGreenhouse, toolsFolder, waterBedProcedure
} from "@protoport/testing";

// Requests over HTTP/1.1 that are refused before their body has arrived. The client gets the response in any case.

interface Client {
  readonly name: string;
  readonly needs: readonly string[];
  readonly build?: readonly [string, ...string[]];
  readonly command: readonly [string, ...string[]];
}

const built = toolsFolder("refused-bodies");
const source = (name: string): string => join(import.meta.dirname, name);

// oxfmt-ignore
const clients: readonly Client[] = [
  { name: "Python's http.client", needs: ["python3"], command: ["python3", source("http_client.py")] },
  { name: "fetch", needs: [], command: [process.execPath, source("fetch.ts")] },
  { name: "Go's net/http", needs: ["go"], build: ["go", "build", "-o", join(built, "net-http"), source("net_http.go")],
    command: [join(built, "net-http")] },
  { name: "curl", needs: ["curl"], command: ["sh", source("curl.sh")] },
  { name: "curl without Expect", needs: ["curl"], command: ["sh", source("curl.sh"), "-H", "Expect:"] },
  { name: "Java's HttpClient", needs: ["java", "javac"], build: ["javac", "-d", built, source("JavaHttpClient.java")],
    command: ["java", "-cp", built, "JavaHttpClient"] },
];

const mebibyte = 1024 * 1024;
const json = "application/json";
// oxfmt-ignore
const tooLarge = {
  what: "a body over the limit", path: "/beds/7:water", method: "POST", type: json, admitted: true, httpStatus: 413,
};
// oxfmt-ignore
const rows = [
  { ...tooLarge, mebibytes: 5 },
  { ...tooLarge, mebibytes: 8 },
  { ...tooLarge, mebibytes: 32 },
  { ...tooLarge, what: "a body without a credential", mebibytes: 8, admitted: false, httpStatus: 401 },
  { ...tooLarge, what: "a body with a wrong method", mebibytes: 8, method: "PUT", httpStatus: 405 },
  { ...tooLarge, what: "a body with a wrong content type", mebibytes: 8, path: waterBedProcedure, type: "text/plain",
    httpStatus: 415 },
];

const times = 8;

/** Timeout in ms for eight 32 MiB bodies, sent by a program with a virtual machine on a busy computer. */
const responsesLimitMs = 240_000;

const refuse = (): never => {
  throw new ConnectError("who are you?", Code.Unauthenticated);
};

function describeRefusals({ build, command }: Client): void {
  let open: TestGreenhouse;
  let closed: TestGreenhouse;
  beforeAll(async () => {
    if (build !== undefined) await buildStep(build[0], build.slice(1));
    open = await startGreenhouse({}, { readMaxBytes: 64 * 1024 });
    closed = await startGreenhouse({}, { readMaxBytes: 64 * 1024, admit: refuse });
  }, buildLimitMs);
  afterAll(() => Promise.all([open, closed].map((greenhouse) => greenhouse[Symbol.asyncDispose]())));

  test.each(rows)("gets status $httpStatus for $what ($mebibytes MiB)", async (row) => {
    const { port } = (row.admitted ? open : closed).address;
    const line = `${row.method} http://127.0.0.1:${String(port)}${row.path} ${row.type} ${String(row.mebibytes * mebibyte)}\n`;
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const output = Promise.all([text(child.stdout), once(child, "exit")]);
      child.stdin.end(line.repeat(times));
      const [statuses] = await output;
      expect(statuses).toBe(`${String(row.httpStatus)}\n`.repeat(times));
    } finally {
      child.kill("SIGKILL");
    }
  });
}

for (const client of clients) {
  const has = client.needs.every(hasProgram);
  describe.runIf(has)(client.name, { timeout: responsesLimitMs }, () => describeRefusals(client));
}
