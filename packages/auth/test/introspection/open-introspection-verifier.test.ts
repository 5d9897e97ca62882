import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

import { describe, expect, test, vi } from "vitest";

import type { OperatorLog } from "../../src/inputs/operator-log.ts";
import {
  openIntrospectionVerifier,
  type IntrospectionSource,
} from "../../src/introspection/open-introspection-verifier.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../src/token-verifier.ts";
import { waitLimitMs, within } from "../../../testing/src/deadline.ts";
import { startOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { quietLog } from "../../../testing/src/operations/quiet-log.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

const nowS = Math.floor(Date.now() / 1000);

interface Question {
  readonly method: string | undefined;
  readonly header: IncomingMessage["headers"];
  readonly body: string;
}

interface Endpoint extends AsyncDisposable {
  readonly verifier: TokenVerifier;
  readonly questions: readonly Question[];
  readonly secretFile: string;
  answer: RequestListener | object;
}

/** An introspection endpoint that answers with a JSON object, or as a test says, and a verifier that asks it. */
async function openEndpoint(
  answer: Endpoint["answer"],
  source: Partial<IntrospectionSource> = {},
  log: OperatorLog = quietLog,
): Promise<Endpoint> {
  const questions: Question[] = [];
  const folder = createTempFolder();
  const secretFile = folder.file("secret");
  writeFileSync(secretFile, "s3cr:et\n");
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      questions.push({ method: request.method, header: request.headers, body });
      if (typeof endpoint.answer === "function") endpoint.answer(request, response);
      else response.end(JSON.stringify(endpoint.answer));
    });
  });
  const { baseUrl, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  const opened = await openIntrospectionVerifier(
    { url: `${baseUrl}/introspect`, clientId: "order desk", clientSecretFile: secretFile, ...source },
    log,
  );
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const endpoint: Endpoint = {
    verifier: opened.value,
    questions,
    secretFile,
    answer,
    async [Symbol.asyncDispose]() {
      opened.value.close?.();
      await close();
      folder[Symbol.dispose]();
    },
  };
  return endpoint;
}

async function outcomeOf({ verifier }: Endpoint, token = "opaque-token"): Promise<TokenOutcome> {
  return await within(Promise.resolve(verifier.verify({ text: token, digest: digestOf(token) })), "the outcome");
}

/** The clock of `performance.now()`, on which a test lets time pass. Dispose of it with `using`. */
function startClock(): Disposable & { readonly pass: (ms: number) => void } {
  const realNow = performance.now.bind(performance);
  let aheadMs = 0;
  const spy = vi.spyOn(performance, "now").mockImplementation(() => realNow() + aheadMs);
  return {
    pass: (ms) => {
      aheadMs += ms;
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

describe("an introspection endpoint", () => {
  test("is asked by POST with a form, as the client that we are (RFC 7662 §2.1)", async () => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada" });
    await outcomeOf(endpoint, "a+token/with~signs==");
    const [question] = endpoint.questions;
    expect(question?.method).toBe("POST");
    expect(question?.header["content-type"]).toMatch(/^application\/x-www-form-urlencoded/);
    expect(question?.header.authorization).toBe(`Basic ${Buffer.from("order+desk:s3cr%3Aet").toString("base64")}`);
    expect(Object.fromEntries(new URLSearchParams(question?.body))).toEqual({
      token: "a+token/with~signs==",
      token_type_hint: "access_token",
    });
  });

  test("is asked with the new secret after the file has changed, whose end of line is no part of it", async () => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada" });
    writeFileSync(endpoint.secretFile, "rot\nated\r\n");
    await endpoint.verifier.reload?.();
    await outcomeOf(endpoint);
    expect(endpoint.questions[0]?.header.authorization).toBe(
      `Basic ${Buffer.from("order+desk:rot%0Aated").toString("base64")}`,
    );
  });

  test("is asked with the last good secret while there is none in the file", async () => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada" });
    writeFileSync(endpoint.secretFile, "\n");
    await endpoint.verifier.reload?.();
    await outcomeOf(endpoint);
    expect(endpoint.questions[0]?.header.authorization).toBe(
      `Basic ${Buffer.from("order+desk:s3cr%3Aet").toString("base64")}`,
    );
  });

  test.each([
    { name: "an active token", answer: { active: true, sub: "ada", exp: nowS + 600 } },
    { name: "a token that is not active", answer: { active: false } },
  ])("is asked once about $name, however often it comes", async ({ answer }) => {
    await using endpoint = await openEndpoint(answer);
    await Promise.all([outcomeOf(endpoint), outcomeOf(endpoint)]);
    await outcomeOf(endpoint);
    expect(endpoint.questions).toHaveLength(1);
    expect(endpoint.verifier.verify({ text: "opaque-token", digest: digestOf("opaque-token") })).not.toBeInstanceOf(
      Promise,
    );
  });

  test.each([
    { name: "a token at the end of its time", answer: { active: true, sub: "ada", exp: nowS - 5 } },
    { name: "a token that is refused for what it is", answer: { active: true, sub: "ada", cnf: {} } },
  ])("is asked again about $name", async ({ answer }) => {
    await using endpoint = await openEndpoint(answer);
    await outcomeOf(endpoint, "first");
    expect(endpoint.verifier.verify({ text: "first", digest: digestOf("first") })).toBeInstanceOf(Promise);
  });

  test.each([
    { name: "active", answer: { active: true, sub: "ada" }, forMs: 30_000 },
    { name: "inactive", answer: { active: false }, forMs: 10_000 },
  ])("is asked about an $name token after its time, where the wall clock is set back", async ({ answer, forMs }) => {
    await using endpoint = await openEndpoint(answer);
    const { kind } = await outcomeOf(endpoint);
    using clock = startClock();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    try {
      endpoint.answer = { active: kind !== "principal", sub: "ada" };
      expect(await outcomeOf(endpoint)).toMatchObject({ kind });
      clock.pass(forMs);
      expect((await outcomeOf(endpoint)).kind).not.toBe(kind);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("an active token", () => {
  test.each<[name: string, answer: object, want: object, source?: Partial<IntrospectionSource>]>([
    ["has every scope, unless they are demanded", { sub: "ada", scope: "a" }, { subject: "ada", scopes: "all" }],
    [
      "has its own scopes where they are demanded",
      { sub: "ada", scope: "a b" },
      { scopes: new Set(["a", "b"]) },
      { enforceScopes: true },
    ],
    [
      "is of the issuer that the answer names",
      { sub: "ada", iss: "https://id.example" },
      { issuer: "https://id.example" },
    ],
    [
      "is of the endpoint where it names none",
      { sub: "ada" },
      { issuer: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) },
    ],
    ["names our audience", { sub: "ada", aud: ["x", "orders"] }, { subject: "ada" }, { audiences: ["orders"] }],
    ["names one of ours", { sub: "ada", aud: "orders" }, { subject: "ada" }, { audiences: ["gardens", "orders"] }],
    ["expired within the clock skew", { sub: "ada", exp: nowS - 10 }, { subject: "ada" }],
    ["begins within the clock skew", { sub: "ada", nbf: nowS + 10 }, { subject: "ada" }],
  ])("is taken that %s", async (_, answer, want, source) => {
    await using endpoint = await openEndpoint({ active: true, ...answer }, source);
    expect(await outcomeOf(endpoint)).toMatchObject({ kind: "principal", ...want });
  });

  test.each<{ name: string; answer: object; source?: Partial<IntrospectionSource>; want?: string }>([
    { name: "has no subject", answer: { sub: undefined } },
    { name: "has a subject that is too long", answer: { sub: "s".repeat(256) } },
    { name: "is for another audience", answer: { aud: "other" }, source: { audiences: ["orders"] } },
    { name: "names no audience where one is demanded", answer: {}, source: { audiences: ["orders"] } },
    { name: "is bound to a key", answer: { cnf: { jkt: "x" } } },
    { name: "is a DPoP token", answer: { token_type: "DPOP" } },
    { name: "begins later", answer: { nbf: nowS + 3600 } },
    { name: "has an expiry that is a text", answer: { exp: "2099" } },
    { name: "expired before the clock skew", answer: { exp: nowS - 31 }, want: "expired" },
  ])("is refused that $name", async ({ answer, source, want = "invalid" }) => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada", ...answer }, source);
    expect(await outcomeOf(endpoint)).toMatchObject({ kind: want });
  });
});

describe("a token is neither good nor bad, but cannot be checked now,", () => {
  // Side by side: two of them wait for the end of an answer that never ends.
  test.concurrent.each<[name: string, answer: Endpoint["answer"], want: RegExp, isAboutToken?: boolean]>([
    ["fails", (_request, response) => void response.writeHead(500).end(), /responded with status 500$/],
    ["has had enough", (_request, response) => void response.writeHead(429).end(), /429$/],
    ["does not know us", (_request, response) => void response.writeHead(401).end(), /responded with status 401$/],
    [
      "is behind a firewall that takes the token for an attack",
      (_request, response) => void response.writeHead(403).end(),
      /responded with status 403$/,
      true,
    ],
    ["sends HTML", (_request, response) => void response.end("<p>Request rejected"), /is not valid JSON$/, true],
    ["never answers", () => {}, /timeout/i],
    ["does not say whether it is active", { sub: "ada" }, /has no boolean "active"/, true],
    ["says so with a text", { active: "false" }, /has no boolean "active"/, true],
  ])("when the endpoint %s", async (_, answer, want, isAboutToken = false) => {
    const warnings: object[] = [];
    // Long enough for an answer that comes, on a machine that is busy; one that hangs costs a second once.
    const source = { timeoutMs: want.source === "timeout" ? 1000 : waitLimitMs };
    const log = { info: () => {}, warn: (fields: object) => warnings.push(fields) };
    await using endpoint = await openEndpoint(answer, source, log);
    const names = ["one", "two", "three", "four", "five"];
    const outcomes = await Promise.all(names.map((name) => outcomeOf(endpoint, `opaque-token-${name}`)));
    const reason = expect.stringMatching(want);
    expect(outcomes).toEqual(names.map(() => ({ kind: "unavailable", reason, retryAfterS: 1 })));
    const warning = {
      errorCode: "ERR_INTROSPECTION_UNAVAILABLE",
      endpoint: expect.stringMatching(/\/introspect$/),
      problem: expect.stringMatching(want),
    };
    expect(warnings).toEqual(isAboutToken ? [] : [warning]);
    expect(JSON.stringify(warnings)).not.toContain("opaque-token");
    // After five tokens on which the endpoint itself failed, no other token is sent to it.
    expect(endpoint.verifier.problem).toEqual(isAboutToken ? undefined : reason);
    endpoint.answer = { active: true, sub: "ada" };
    expect(await outcomeOf(endpoint, "six")).toMatchObject({ kind: isAboutToken ? "principal" : "unavailable" });
    const others = endpoint.questions.filter(({ body }) => body.includes("six"));
    expect(others).toHaveLength(isAboutToken ? 1 : 0);
  });

  test("when four tokens fail: the next one is asked about, and no problem is told", async () => {
    const reported: unknown[] = [];
    const log = { info: (...line: unknown[]) => void reported.push(line), warn: () => {} };
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end(), {}, log);
    for (const token of ["one", "two", "three", "four"]) await outcomeOf(endpoint, token);
    expect(endpoint.verifier.problem).toBeUndefined();
    endpoint.answer = { active: true, sub: "ada" };
    for (const token of ["five", "six"]) expect(await outcomeOf(endpoint, token)).toMatchObject({ kind: "principal" });
    expect(reported).toEqual([
      [{ endpoint: expect.stringMatching(/\/introspect$/) }, "token introspection recovered"],
    ]);
  });

  test("when five tokens fail, but only until the endpoint answers about one that it had before", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    await using endpoint = await openEndpoint((_request, response) => asked.resolve(response));
    const first = outcomeOf(endpoint, "first");
    const response = await within(asked.promise, "the first question");
    endpoint.answer = (_request, failed) => void failed.writeHead(500).end();
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    expect(endpoint.verifier.problem).toBeDefined();
    endpoint.answer = { active: true, sub: "ada" };
    response.end(JSON.stringify(endpoint.answer));
    expect(await first).toMatchObject({ kind: "principal" });
    expect(endpoint.verifier.problem).toBeUndefined();
    expect(await outcomeOf(endpoint, "six")).toMatchObject({ kind: "principal" });
  });

  test("when five tokens fail, but not when one more does after the pause", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end());
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    using clock = startClock();
    clock.pass(1_000);
    await outcomeOf(endpoint, "six");
    endpoint.answer = { active: true, sub: "ada" };
    expect(await outcomeOf(endpoint, "seven")).toMatchObject({ kind: "principal" });
  });

  test("when five tokens fail again after the endpoint was back, which is told of again", async () => {
    const messages: string[] = [];
    const tell = (_fields: object, message: string): void => void messages.push(message);
    await using endpoint = await openEndpoint({}, {}, { info: tell, warn: tell });
    using clock = startClock();
    for (const outage of [1, 2]) {
      endpoint.answer = (_request, response) => void response.writeHead(500).end();
      for (let n = 0; n < 5; n += 1) {
        expect(endpoint.verifier.problem).toBeUndefined();
        await outcomeOf(endpoint, `token-${outage}-${n}`);
      }
      expect(endpoint.verifier.problem).toMatch(/responded with status 500$/);
      endpoint.answer = { active: true, sub: "ada" };
      expect(await outcomeOf(endpoint, `early-${outage}`)).toMatchObject({ kind: "unavailable" });
      clock.pass(1_000);
      expect(await outcomeOf(endpoint, `late-${outage}`)).toMatchObject({ kind: "principal" });
      expect(endpoint.verifier.problem).toBeUndefined();
    }
    const away = "cannot introspect tokens";
    const back = "token introspection recovered";
    expect(messages).toEqual([away, back, away, back]);
  });

  test("when five tokens fail, and no longer where the wall clock is set back meanwhile", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end());
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    using clock = startClock();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    try {
      clock.pass(1_000);
      endpoint.answer = { active: true, sub: "ada" };
      for (const token of ["six", "one"]) expect(await outcomeOf(endpoint, token)).toMatchObject({ kind: "principal" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("when many fail, but not five in a row", async () => {
    await using endpoint = await openEndpoint({});
    for (let round = 0; round < 4; round += 1) {
      endpoint.answer = (_request, response) => void response.writeHead(500).end();
      for (let n = 0; n < 4; n += 1) await outcomeOf(endpoint, `bad-${round}-${n}`);
      endpoint.answer = { active: true, sub: "ada" };
      expect(await outcomeOf(endpoint, `good-${round}`)).toMatchObject({ kind: "principal" });
    }
    expect(endpoint.verifier.problem).toBeUndefined();
  });

  test("when it failed just now: the same token is not sent again", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(403).end());
    await outcomeOf(endpoint, "one");
    expect(endpoint.verifier.verify({ text: "one", digest: digestOf("one") })).toMatchObject({ kind: "unavailable" });
    expect(endpoint.questions).toHaveLength(1);
  });

  test("when 64 others wait for an endpoint that hangs: it is told at once, and they when nobody is asked any more", async () => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada" }, { timeoutMs: 4 * waitLimitMs });
    for (const token of ["one", "two"]) await outcomeOf(endpoint, token);
    endpoint.answer = () => {};
    const waiting = Array.from({ length: 64 }, (_, n) => outcomeOf(endpoint, `token-${n}`));
    expect(await outcomeOf(endpoint, "one-more")).toMatchObject({
      kind: "unavailable",
      reason: expect.stringContaining("64 introspection requests"),
    });
    endpoint.verifier.close?.();
    const outcomes = await Promise.all(waiting);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["unavailable"]));
    expect(JSON.stringify(outcomes)).not.toContain("64 introspection requests");
  });
});

test("an endpoint answers any number of questions, one after the other", async () => {
  const messages: string[] = [];
  const log = { info: (_fields: object, message: string) => messages.push(message), warn: () => {} };
  await using endpoint = await openEndpoint({ active: true, sub: "ada" }, {}, log);
  for (let n = 0; n < 70; n += 1) expect(await outcomeOf(endpoint, `token-${n}`)).toMatchObject({ kind: "principal" });
  expect(messages).toEqual([]);
});

describe("openIntrospectionVerifier", () => {
  test.each([
    { name: "an endpoint over plain HTTP", source: { url: "http://id.example/introspect" }, want: /must use https/ },
    { name: "no client id", source: { clientId: "" }, want: /requires a client id/ },
    { name: "a secret file that is not there", source: { clientSecretFile: "/nowhere/secret" }, want: /does not exist$/ },
    { name: "a secret in a device", source: { clientSecretFile: "/dev/null" }, want: /is not a regular file/ },
    { name: "an empty secret", secret: "\n", want: /: the secret is empty$/ },
    { name: "a secret that is none", secret: "x".repeat(4097), want: /is larger than 4096 bytes$/ },
  ])("reports $name", async ({ source = {}, secret = "x".repeat(4096), want }) => {
    using folder = createTempFolder();
    const clientSecretFile = folder.file("secret");
    writeFileSync(clientSecretFile, secret);
    const result = await openIntrospectionVerifier(
      { url: "https://id.example/introspect", clientId: "orders", clientSecretFile, ...source },
      quietLog,
    );
    expect(result).toEqual({ kind: "problems", problems: [expect.stringMatching(want)] });
  });
});
